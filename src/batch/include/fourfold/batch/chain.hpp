// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What keeps a chain of batch jobs from going on when it should not: pure functions of what the
/// earlier starts have left behind.
#pragma once

#include <fourfold/base/error.hpp>
#include <fourfold/base/process_identity.hpp>
#include <fourfold/batch/accounting.hpp>
#include <fourfold/batch/attempt_log.hpp>
#include <fourfold/telemetry/exit_status.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::batch {

struct ChainLimits {
  int most_starts = 0;            ///< of a chain, launches inside one not counted; 0: no limit
  int most_without_progress = 3;  ///< starts from the same checkpoint; 0: no limit
};

/// Why a run should not be started once more.
/// @param attempts  all of the run, in order; those of other chains do not count. Nor do those of
///   the same launch that ended in a way that another start does not mend: who starts
///   again inside one allocation is a person, who has mended it
/// @param next      the start that is asked for: its chain, job, restart, launch and checkpoint
/// @return nothing when it may start. Otherwise the code of the attempt before, if that ended in a
/// way that another start does not mend, or no_progress
std::optional<UserError> refusal(std::span<const Attempt> attempts, const Attempt& next,
                                 const ChainLimits& limits);

/// Whether the chain has a later start than this one: Slurm has given up a node that lives on, and
/// the run with it. Then nothing that this start decides counts.
bool is_superseded(std::span<const Attempt> attempts, const Attempt& attempt);

/// Whether `by` is a start of the same chain before `attempt`.
bool is_of_earlier_start(std::span<const Attempt> attempts, const Attempt& attempt,
                         const BatchJob& by);

/// What a launcher and the batch system said of a start, beside its code.
struct LauncherSaid {
  /// Lines of srun and of slurmstepd, or its standard error when it was asked once more
  /// (launcher_words.hpp).
  std::string words = {};
  std::string memory_limit = {};  ///< of the job on a node, and who set it; for messages
  std::optional<AccountedStart> accounted = {};  ///< by Slurm's accounting; nothing: not known
  /// Nodes of the job that do not answer Slurm, asked where the run told nothing.
  std::vector<std::string> nodes_gone = {};
  bool is_finished = false;  ///< the run was, before this start
};

/// How an attempt ended, from what it left and what its launcher said, which is trusted less: a
/// launcher reports the largest code of all ranks, or a signal. In this order:
///
/// 0. that processes were ended for the memory they took, unless the run has finished or saved:
///    what the other ranks tell is that one is gone;
/// 1. the end in an exit.json that this attempt wrote;
/// 2. what `fourfold train` noted when it refused the start;
/// 3. an exit.json by which another job has trained since this attempt began: not worth another
///    start then;
/// 4. nodes on which the program could not be started, where it could on others: they are left out;
/// 5. the launcher's code, and whether exit.json says that this attempt was "running".
///
/// What lay there when the attempt began is an earlier start's and says nothing.
/// @param left           exit.json
/// @param attempt        as attempts.jsonl has it
/// @param own            the job of the attempt
/// @param launcher_code  what srun or mpiexec ended with
AttemptEnd end_of(const telemetry::ExitRecord& left, const Attempt& attempt, const BatchJob& own,
                  int launcher_code, double unix_s, const LauncherSaid& said = {});

/// The end of an attempt that nobody has noted when the next one of its chain begins: the node of
/// its batch script is gone, or the script was killed. By the exit.json that it wrote, by what
/// `fourfold train` noted when it refused the start, by what Slurm says of the job, else as a fault
/// of a node.
/// @param last_word_unix_s  the newest sign of life of the run, seconds since 1970; 0: not known
AttemptEnd end_not_noted(const telemetry::ExitRecord& left, const Attempt& attempt,
                         double last_word_unix_s,
                         const std::optional<AccountedStart>& accounted = {});

/// The end of a job of a chain that was over before its batch script could begin a start of the
/// run: a node failed in its first seconds, or somebody ended it. The next one has begun since.
/// @pre job.ended_unix_s
AttemptEnd end_before_begin(const AccountedStart& job);

/// Whether an exit.json says that the run finished, or saved and stopped.
bool has_ended_well(const telemetry::ExitRecord& record);

/// Whether an exit.json was written since the attempt began.
bool is_since(const telemetry::ExitRecord& left, const Attempt& attempt);

/// A run that was told to stop knows the signal; the batch script knows what Slurm sent it
/// for: "preempted", "time limit".
/// @return the same with that reason, if it saved and stopped, and not for a STOP file
telemetry::ExitStatus stopped_by_slurm(telemetry::ExitStatus status, std::string_view why);

/// A rank that has left without a word, and no node is blamed for that: it may have been the only
/// one on a node that does not answer any more, and has gone with it.
/// @param gone   nodes of the job that do not answer Slurm
/// @param nodes  of the launch; where none of them answers it is Slurm that does not
/// @return the same as a fault of these nodes; unchanged for any other end
telemetry::ExitStatus lost_with_nodes(telemetry::ExitStatus status,
                                      const std::vector<std::string>& gone, int nodes);

/// Makes the file FINISHED in the directory of a run: the target was reached. It says at which
/// step, so that a run whose train.steps is raised later goes on. Written by the run when all else
/// is. @throws UserError (cannot_write)
void write_finished(const std::filesystem::path& log_dir, std::int64_t step);
/// Whether a run of `steps` steps has nothing left to do. A file without a number counts as one
/// that somebody made to end a chain.
bool is_finished(const std::filesystem::path& log_dir, std::int64_t steps);

}  // namespace fourfold::batch
