// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/error.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace fourfold {

/// Who this process is among the ranks of a run. What runs the ranks (comm's MpiRuntime) says it;
/// what reports a failure (a program's main) asks, and so needs to know nothing of MPI. Default:
/// the only process.
struct RankIdentity {
  int rank = 0;
  int size = 1;
  std::string host;
  /// Ends every rank at once. nullptr: there is only this process, or, when size > 1, processes
  /// that cannot reach each other and all fail for the same reason.
  void (*end_all_ranks)(ExitCode) noexcept = nullptr;
};

/// Not thread-safe: for the main thread of a process.
void set_rank_identity(RankIdentity identity);
const RankIdentity& rank_identity() noexcept;

/// "0-2, 5" of numbers in ascending order.
/// @param dash  between the ends of a range
std::string ranges_text(std::span<const int> numbers, std::string_view dash = "-");

/// "rank 3", "ranks 0-2, 5" of ranks in ascending order.
std::string ranks_text(std::span<const int> ranks);

// What the environment says, which a batch system or a launcher sets.

/// A variable; empty when it is not set.
std::string environment_text(const char* name);

/// A whole number that is not negative; `otherwise` where the variable is not set, or, with a
/// warning, where it is no such number.
std::int64_t environment_number(const char* name, std::int64_t otherwise);

/// The start of a batch system's job that this process belongs to.
struct BatchJob {
  std::string id = {};        ///< "1234"; empty: none
  std::int64_t restarts = 0;  ///< how often it was started before: it may have been put back
  /// how often its script had launched the run before, in this start of it
  std::int64_t launch = 0;
  std::string chain = {};     ///< what jobs have in common that go on with each other; empty: none
  std::string previous = {};  ///< the job of its chain that submitted this one; empty: none

  /// As SLURM_JOB_ID, SLURM_RESTART_COUNT, FOURFOLD_LAUNCH, FOURFOLD_CHAIN and FOURFOLD_PREVIOUS
  /// say. What is not one word is taken for none: it stands in lines of files.
  static BatchJob of_this_process();
  /// Whether both are the same launch of the same start of a job, whatever its chain is called.
  bool is_same_launch(const BatchJob& other) const {
    return id == other.id && restarts == other.restarts && launch == other.launch;
  }
  friend bool operator==(const BatchJob&, const BatchJob&) = default;
};

}  // namespace fourfold
