// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/io/checkpoint_plan.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <span>
#include <utility>
#include <vector>

namespace fourfold::io {

/// Hands out bytes to ranks of sets that may overlap: always to the rank of the set that has fewest
/// so far, the lowest among equals.
///
/// Every distinct set has a heap of its own. Loads only grow, so an entry that is out of date is
/// too small, never too large: it comes to the top too early and is put right there. A set costs
/// its size once, and each hand-out a logarithm for every set of the rank that is looked at again;
/// scanning the set each time would be 16,384^2 looks for a tensor that 16,384 ranks hold.
class LeastLoaded {
 public:
  /// Adds to `bytes_of_rank`, which outlives this.
  explicit LeastLoaded(std::span<std::int64_t> bytes_of_rank) : bytes_of_rank_(bytes_of_rank) {}

  /// @return the rank that got them
  int give(const RankSet& holders, std::int64_t bytes);

 private:
  using Entry = std::pair<std::int64_t, int>;  ///< bytes as they were once, rank
  using Heap = std::priority_queue<Entry, std::vector<Entry>, std::greater<>>;

  Heap& heap_of(const RankSet& holders);

  std::span<std::int64_t> bytes_of_rank_;
  std::map<RankSet, Heap> heaps_;
};

}  // namespace fourfold::io
