// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/batch/attempt_log.hpp>
#include <fourfold/batch/launcher_words.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::batch {

/// A step of a job in Slurm's accounting.
struct AccountedStep {
  std::string name = {};    ///< "0", "batch"
  std::string called = {};  ///< its job name: the program's, or "fourfold-guard"
  std::string state = {};   ///< "COMPLETED", "OUT_OF_MEMORY", "CANCELLED by 0"
  double began_unix_s = 0;
  std::optional<std::uint64_t> largest_task_bytes = {};  ///< resident, of its largest task
  std::string node_of_largest = {};
  friend bool operator==(const AccountedStep&, const AccountedStep&) = default;
};

/// One start of a job, as the accounting or Slurm's controller has it: a job that was put back into
/// the queue has several.
struct AccountedStart {
  std::string job = {};    ///< of job_spans()
  std::string state = {};  ///< of the job, "RUNNING" until it is over
  double began_unix_s = 0;
  std::optional<double> ended_unix_s = {};
  int nodes = 1;  ///< at its end
  std::vector<AccountedStep> steps = {};

  /// Whether a step of `attempt` that srun started goes on, or has only just ended: the records
  /// come a second later. The guard of restarts inside the job does not count.
  bool is_under_way(const Attempt& attempt) const;
  friend bool operator==(const AccountedStart&, const AccountedStart&) = default;
};

/// The command whose standard output accounted_start() reads: Slurm's sacct (22.05 to 24.11). It
/// fails at once where the cluster keeps no accounts.
std::vector<std::string> accounting_command(const std::string& job);

/// The start of `attempt` in what that command has printed. Lines that are none are left out.
/// @return nothing when it is not among them
std::optional<AccountedStart> accounted_start(std::string_view text, const Attempt& attempt);

/// A kill by the kernel, as the accounting has it of the steps since `attempt` began. Who is killed
/// by Slurm's own count (OverMemoryKill) has been cancelled there, like others.
std::optional<MemoryKill> killed_for_memory(const AccountedStart& start, const Attempt& attempt);

/// The command whose standard output job_spans() reads: Slurm's squeue (22.05 to 24.11).
/// @pre jobs is not empty
std::vector<std::string> job_spans_command(std::span<const std::string> jobs);

/// How long jobs had their nodes, as Slurm's controller says: those in what that command has
/// printed that have, or had, nodes, in its order. Lines that are none of it, a banner's, are left
/// out. The controller forgets a job some minutes after the end (MinJobAge, 300 s by default), and
/// of one that was put back into the queue it knows the last start alone. Their nodes are those
/// that are, or were at the end, not taken out of the job; it knows no steps.
std::vector<AccountedStart> job_spans(std::string_view text);

}  // namespace fourfold::batch
