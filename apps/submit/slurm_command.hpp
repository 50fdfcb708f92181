// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/error.hpp>
#include <fourfold/batch/cluster_facts.hpp>
#include <fourfold/program/command_output.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace fourfold::submit {

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
