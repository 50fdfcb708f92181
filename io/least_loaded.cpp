// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "least_loaded.hpp"

#include <algorithm>

namespace fourfold::io {

bool LeastLoaded::Order::operator()(const RankSet& a, const RankSet& b) const {
  if (a[0] != b[0]) {
    return a[0] < b[0];
  }
  const auto before = [](const RankSet::Axis& x, const RankSet::Axis& y) {
    return std::pair(x.count, x.stride) < std::pair(y.count, y.stride);
  };
  return std::lexicographical_compare(a.axes().begin(), a.axes().end(), b.axes().begin(),
                                      b.axes().end(), before);
}

LeastLoaded::Heap& LeastLoaded::heap_of(const RankSet& holders) {
  const auto [place, is_new] = heaps_.try_emplace(holders);
  if (is_new) {
    std::vector<Entry> entries;
    for (int index = 0; index < holders.size(); ++index) {
      const int rank = holders[index];
      entries.emplace_back(bytes_of_rank_[static_cast<std::size_t>(rank)], rank);
    }
    place->second = Heap({}, std::move(entries));
  }
  return place->second;
}

int LeastLoaded::give(const RankSet& holders, std::int64_t bytes) {
  if (holders.size() == 1) {
    bytes_of_rank_[static_cast<std::size_t>(holders[0])] += bytes;
    return holders[0];
  }
  Heap& heap = heap_of(holders);
  for (;;) {
    const auto [known_bytes, rank] = heap.top();
    std::int64_t& actual_bytes = bytes_of_rank_[static_cast<std::size_t>(rank)];
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
