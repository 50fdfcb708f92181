// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/schedule/schedule_dependencies.hpp>
#include <fourfold/schedule/schedule_generators.hpp>

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <set>
#include <utility>
#include <vector>

namespace fourfold::schedule {
namespace {

TEST_CASE("channels hold what one rank sends another, in order", "[schedule_dependencies]") {
  const auto all = channels(make_schedule({.name = "1f1b", .stages = 3, .micro_batches = 4}));
  REQUIRE(all.size() == 4);
  CHECK(std::pair(all[0].from, all[0].to) == std::pair(0, 1));
  CHECK(all[0].kind == ActionKind::send_activation);
  CHECK(std::pair(all[1].from, all[1].to) == std::pair(1, 0));
  CHECK(all[1].kind == ActionKind::send_gradient);
  for (const Channel& channel : all) {
    CHECK(channel.sends.size() == 4);
    CHECK(channel.receives.size() == 4);
  }
}

TEST_CASE("actions wait for what arrives and for what must have left", "[schedule_dependencies]") {
  // Rank 1: receive 0, F0, B0, send 0, receive 1, F1, B1, send 1: all in one slot.
  const Schedule schedule = make_schedule({.name = "1f1b", .stages = 2, .micro_batches = 2});
  const Dependencies needs = dependencies(schedule);
  const auto& last = needs.nodes[1];
  REQUIRE(last.size() == 8);
  CHECK(last[1].waits == std::array{last[0].transfer, -1});  // F0: its activation
  CHECK(last[2].waits == std::array{-1, -1});                // B0: the loss is here
  CHECK(last[4].waits == std::array{-1, -1});                // an input buffer sends nothing
  CHECK(last[6].waits == std::array{-1, last[3].transfer});  // B1: gradient 0 has left
  CHECK(needs.transfers[last[0].transfer].send == ActionPlace{0, 1});
  CHECK(needs.transfers[last[0].transfer].before == -1);
  CHECK(needs.transfers[last[4].transfer].before == last[0].transfer);
  CHECK(needs.transfers.size() == 4);
}

TEST_CASE("a gradient handed over on the same rank waits until the buffer there has left",
          "[schedule_dependencies]") {
  // In the middle of a V the gradient of chunk 1 goes into chunk 0's slot, which sends it on.
  const Schedule schedule = make_schedule({.name = "zb-v", .stages = 2, .micro_batches = 6});
  const Dependencies needs = dependencies(schedule);
  int waiting = 0;
  for (std::size_t index = 0; index < schedule.ranks[1].size(); ++index) {
    const Action& action = schedule.ranks[1][index];
    if (action.kind == ActionKind::backward_input && action.chunk == 1) {
      const int left = needs.nodes[1][index].waits[1];
      waiting += left >= 0 ? 1 : 0;
      if (left >= 0) {
        const Action& send = schedule.ranks[1][needs.transfers[left].send.index];
        CHECK(send.kind == ActionKind::send_gradient);
        CHECK(send.chunk == 0);
        CHECK(send.micro_batch < action.micro_batch);
      }
    }
  }
  CHECK(waiting == 6 - schedule.slots(1, 0));
}

TEST_CASE("an execution order has every action once, each after what it waits for",
          "[schedule_dependencies]") {
  const Schedule schedule =
      make_schedule({.name = "interleaved", .stages = 3, .micro_batches = 5, .chunks = 3});
  const Dependencies needs = dependencies(schedule);
  const std::vector<ActionPlace> order = execution_order(schedule, needs);
  std::vector<int> next(3, 0);
  std::set<int> complete;
  std::set<int> half;
  for (const ActionPlace& place : order) {
    CHECK(place.index == next[place.rank]++);
    const Dependencies::Node& node = needs.nodes[place.rank][place.index];
    for (const int wait : node.waits) {
      CHECK((wait < 0 || complete.contains(wait)));
    }
    if (node.transfer >= 0 && !half.insert(node.transfer).second) {
      complete.insert(node.transfer);
    }
  }
  CHECK(complete.size() == needs.transfers.size());
  for (std::size_t rank = 0; rank < next.size(); ++rank) {
    CHECK(next[rank] == std::ssize(schedule.ranks[rank]));
  }
}

}  // namespace
}  // namespace fourfold::schedule
