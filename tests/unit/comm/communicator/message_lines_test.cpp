// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "communicator/split.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

namespace fourfold::comm {
namespace {

/// A pipeline of so many ranks in a ring, with a tag for each direction.
std::vector<MessageRoute> both_ways_around(int ranks) {
  std::vector<MessageRoute> routes;
  for (int rank = 0; rank < ranks; ++rank) {
    routes.push_back({rank, (rank + 1) % ranks, 0});
    routes.push_back({(rank + 1) % ranks, rank, 1});
  }
  return routes;
}

TEST_CASE("rounds hold each route once, and no rank twice in a round", "[message_lines]") {
  for (int ranks = 2; ranks <= 17; ++ranks) {
    const auto routes = both_ways_around(ranks);
    std::multiset<MessageRoute> found;
    const auto rounds = disjoint_rounds(routes);
    for (const auto& round : rounds) {
      std::multiset<int> taken;
      for (const MessageRoute& route : round) {
        taken.insert({route.from, route.to});
        found.insert(route);
      }
      CHECK(std::set<int>(taken.begin(), taken.end()).size() == taken.size());
    }
    CHECK(found == std::multiset<MessageRoute>(routes.begin(), routes.end()));
    CHECK(rounds.size() <= 8);  // four routes at each rank; ranks times two if laid one by one
  }
}

TEST_CASE("rounds depend on the set of routes alone", "[message_lines]") {
  auto routes = both_ways_around(6);
  const auto rounds = disjoint_rounds(routes);
  std::ranges::shuffle(routes, std::mt19937(3));
  routes.insert(routes.end(), {routes.front(), routes.back()});
  CHECK(disjoint_rounds(routes) == rounds);
  CHECK(disjoint_rounds({}).empty());
}

}  // namespace
}  // namespace fourfold::comm
