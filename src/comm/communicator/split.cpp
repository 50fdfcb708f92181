// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "split.hpp"

#include <algorithm>
#include <cstdint>

namespace fourfold::comm {

std::vector<int> members_of_color(Communicator& communicator, int color, int key) {
  const std::size_t size = communicator.size();
  const std::int32_t own[2] = {color, key};
  std::vector<std::int32_t> all(2 * size);
  const std::vector<std::int64_t> counts(size, 2);
  communicator.host().all_gather({own, {2}}, {all.data(), {std::ssize(all)}}, counts, {}).wait({});
  std::vector<int> members;
  for (int rank = 0; rank < communicator.size(); ++rank) {
    if (all[2 * static_cast<std::size_t>(rank)] == color) {
      members.push_back(rank);
    }
  }
  std::ranges::stable_sort(
      members, {}, [&all](int rank) { return all[2 * static_cast<std::size_t>(rank) + 1]; });
  return members;
}

}  // namespace fourfold::comm
