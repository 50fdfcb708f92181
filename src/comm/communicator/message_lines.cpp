// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "message_lines.hpp"

#include <set>
#include <utility>

namespace fourfold::comm {

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
