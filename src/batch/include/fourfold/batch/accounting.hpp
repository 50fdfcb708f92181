// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/batch/attempt_log.hpp>
#include <fourfold/batch/launcher_words.hpp>

#include <cstdint>
#include <optional>
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

/// One start of a job there: a job that was put back into the queue has several.
struct AccountedStart {
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

}  // namespace fourfold::batch
