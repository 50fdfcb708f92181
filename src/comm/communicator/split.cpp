// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "split.hpp"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

namespace fourfold::comm {

std::vector<int> members_of_color(Communicator& communicator, int color, int key) {
  const std::size_t size = communicator.size();
  const std::int32_t own[2] = {color, key};
  std::vector<std::int32_t> all(2 * size);
  const std::vector<std::int64_t> counts(size, 2);
  communicator.host().all_gather({own, {2}}, {all.data(), {std::ssize(all)}}, counts, {}).wait({});
  std::vector<int> members;
  for (int rank = 0; rank < communicator.size(); ++rank) {
    if (all[2 * rank] == color) {
      members.push_back(rank);
    }
  }
  std::ranges::stable_sort(members, {}, [&all](int rank) { return all[2 * rank + 1]; });
  return members;
}

std::vector<std::vector<MessageRoute>> disjoint_rounds(std::span<const MessageRoute> routes) {
  std::set<MessageRoute> left(routes.begin(), routes.end());
  std::vector<std::vector<MessageRoute>> rounds;
  while (!left.empty()) {
    std::set<int> taken;
    std::vector<MessageRoute> round;
    for (const MessageRoute& route : left) {
      if (!taken.contains(route.from) && !taken.contains(route.to)) {
        taken.insert({route.from, route.to});
        round.push_back(route);
      }
    }
    for (const MessageRoute& route : round) {
      left.erase(route);
    }
    rounds.push_back(std::move(round));
  }
  return rounds;
}

}  // namespace fourfold::comm
