// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::batch {

/// Why a launcher that has started nothing would not do so the next time either: a plugin that is
/// not there or cannot be loaded, an option that it does not know, an account that is none, a
/// program that nodes do not have or may not run. What may pass by itself, as a node that does not
/// answer, is no such reason.
/// @param errors  its standard error: of Slurm's srun (22.05 to 24.11), or of Hydra's mpiexec
/// @return the line that says so; nothing when there is none
std::optional<std::string> unmendable(std::string_view errors);

/// Processes that were ended since they took more memory than the job may have on a node.
struct MemoryKill {
  std::vector<std::string> nodes = {};            ///< sorted
  std::optional<std::uint64_t> taken_bytes = {};  ///< by all on a node, where it is said
  std::optional<std::uint64_t> limit_bytes = {};
  std::optional<std::uint64_t> largest_task_bytes = {};  ///< where the accounting knows it
};

/// As slurmstepd tells it, of its own counting (OverMemoryKill) or of the kernel's (cgroups), and
/// srun of a task.
/// @param words  lines of srun and slurmstepd; others may stand between them
std::optional<MemoryKill> killed_for_memory(std::string_view words);

/// Whether srun says of a task that it ended by itself with this code, whatever became of others.
bool tells_exit_code(std::string_view words, int code);

/// How a task ended, as srun tells it: "Segmentation fault", "Exited with exit code 78".
struct TaskEnd {
  std::string node = {};
  std::string how = {};
  /// Whether it did so by itself: neither told to stop, nor ended for another's sake.
  bool is_failure() const;
};

/// The first task of which srun tells its end; the others may have been ended with it.
std::optional<TaskEnd> first_task_end(std::string_view words);

/// Nodes on which the program could not be started (exit codes 2, 13, 126 and 127 of srun's lines),
/// or which srun did not reach, and why, where that is said.
struct NotStarted {
  std::vector<std::string> nodes = {};  ///< sorted
  std::string why = {};
};
NotStarted not_started(std::string_view words);

}  // namespace fourfold::batch
