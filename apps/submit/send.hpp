// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/error.hpp>
#include <fourfold/batch/cluster_facts.hpp>
#include <fourfold/batch/submission.hpp>
#include <fourfold/program/command_output.hpp>
#include <fourfold/runfile/run_config.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace fourfold::submit {

/// What all jobs of a submission are to train, for batch::keep_run().
struct RunToKeep {
  std::string text;
  std::vector<runfile::RunInput> inputs;
};

/// Keeps the run, writes the script where a chain finds it again, submits it, and prints the job's
/// number. Where sbatch takes no job, nothing is kept, and the script of an earlier submission is
/// back at its place.
/// @param run  nothing: the first start keeps it
/// @throws UserError: no_progress where the run has been told to stop; config where jobs in the
///   queue or a file at the script's place are in the way; cannot_write; as submit_script()
ExitCode send(batch::Submission submission, const std::optional<RunToKeep>& run);

/// Looks whether a job of this run waits or runs, or one of another run that saves in the same
/// checkpoint.dir, and says so if jobs of the user have the name of this one, as far as Slurm can
/// be asked.
/// @throws UserError (config) when there is one, unless submission.beside; for a chain also when a
///   chain of this run is there, whose script would change under it, or jobs of another run have
///   its name: jobs of one name wait for each other
void look_for_queued_jobs(const batch::Submission& submission);

/// Variables of the environment that would make another job of the script than the one that was
/// checked: sbatch takes its variables over the lines of a script, and a job that belongs to
/// another chain hands on whose it is.
std::vector<std::string> variables_in_the_way(const batch::Submission& submission);

/// Variables that are handed on to the batch scripts, which would refuse what they say.
/// @throws UserError (usage)
void refuse_wrong_variables();

/// Takes those that are set out of this process's environment, and says so.
void clear_the_way(const batch::Submission& submission);

/// Asks a command of Slurm, for FOURFOLD_ASK_S seconds at most (60 by default), as
/// program::ask_slurm().
/// @return nothing when there is no such command here
std::optional<program::CommandOutput> ask(const std::vector<std::string>& command);

/// sbatch was asked, and has not said which job it has made: whether there is one is not known.
class MaybeSubmitted : public UserError {
 public:
  explicit MaybeSubmitted(const std::string& message) : UserError(ExitCode::config, message) {}
};

/// Hands a script to sbatch, which may take five times as long: it waits for a controller that is
/// busy. What it says beside the number is told in the log.
/// @throws UserError (config) when there is no job: sbatch has refused the script, or is not here;
///   MaybeSubmitted
batch::SubmittedJob submit_script(const std::filesystem::path& script, const std::string& name);

}  // namespace fourfold::submit
