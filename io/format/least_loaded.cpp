// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "format/least_loaded.hpp"

#include <utility>

namespace fourfold::io {

LeastLoaded::Heap& LeastLoaded::heap_of(const RankSet& holders) {
  const auto [place, is_new] = heaps_.try_emplace(holders);
  if (is_new) {
    std::vector<Entry> entries;
    for (const int rank : holders.members()) {
      entries.emplace_back(bytes_of_rank_[rank], rank);
    }
    place->second = Heap({}, std::move(entries));
  }
  return place->second;
}

int LeastLoaded::give(const RankSet& holders, std::int64_t bytes) {
  if (holders.size() == 1) {
    bytes_of_rank_[holders[0]] += bytes;
    return holders[0];
  }
  Heap& heap = heap_of(holders);
  for (;;) {
    const auto [known_bytes, rank] = heap.top();
    std::int64_t& actual_bytes = bytes_of_rank_[rank];
    heap.pop();
    if (known_bytes == actual_bytes) {
      actual_bytes += bytes;
      heap.emplace(actual_bytes, rank);
      return rank;
    }
    heap.emplace(actual_bytes, rank);
  }
}

}  // namespace fourfold::io
