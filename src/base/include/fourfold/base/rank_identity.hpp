// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/error.hpp>

#include <span>
#include <string>

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
std::string ranges_text(std::span<const int> numbers);

/// "rank 3", "ranks 0-2, 5" of ranks in ascending order.
std::string ranks_text(std::span<const int> ranks);

}  // namespace fourfold
