// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/schedule/schedule.hpp>
#include <fourfold/schedule/schedule_generators.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace fourfold::schedule {
namespace {

using Catch::Matchers::ContainsSubstring;

std::vector<std::vector<int>> used_slots(const Schedule& schedule) {
  std::vector<std::vector<int>> slots;
  for (int rank = 0; rank < schedule.stages; ++rank) {
    std::vector<int>& mine = slots.emplace_back();
    for (int chunk = 0; chunk < schedule.chunks; ++chunk) {
      mine.push_back(schedule.slots(rank, chunk));
    }
  }
  return slots;
}

/// One rank's list, written by hand.
Schedule one_rank(int micro_batches, std::vector<Action> actions) {
  return {.name = "by hand",
          .stages = 1,
          .micro_batches = micro_batches,
          .chunks = 1,
          .placement = Placement::loop,
          .ranks = {std::move(actions)}};
}

std::string defect_of(const Schedule& schedule) {
  return check_schedule(schedule).value_or("");
}

Schedule some_schedule() {
  const auto name = GENERATE("naive", "gpipe", "1f1b", "interleaved", "zb-h1", "zb-v");
  return make_schedule({.name = name, .stages = 3, .micro_batches = 5});
}

TEST_CASE("an action that is dropped is missed, wherever it is", "[schedule_check]") {
  const Schedule whole = some_schedule();
  REQUIRE(defect_of(whole) == "");
  for (std::size_t rank = 0; rank < whole.ranks.size(); ++rank) {
    for (std::size_t index = 0; index < whole.ranks[rank].size(); ++index) {
      Schedule broken = whole;
      auto& actions = broken.ranks[rank];
      actions.erase(actions.begin() + static_cast<std::ptrdiff_t>(index));
      INFO(whole.name << " rank " << rank << " without action " << index);
      CHECK(defect_of(broken) != "");
    }
  }
}

TEST_CASE("an action that is done twice is noticed, wherever it is repeated", "[schedule_check]") {
  const Schedule whole = some_schedule();
  for (std::size_t rank = 0; rank < whole.ranks.size(); ++rank) {
    for (std::size_t index = 0; index < whole.ranks[rank].size(); ++index) {
      const Action action = whole.ranks[rank][index];
      for (const std::size_t at : {index, index + 1, whole.ranks[rank].size()}) {
        Schedule broken = whole;
        auto& actions = broken.ranks[rank];
        actions.insert(actions.begin() + static_cast<std::ptrdiff_t>(at), action);
        INFO(whole.name << " rank " << rank << " action " << index << " again at " << at);
        CHECK(defect_of(broken) != "");
      }
    }
  }
}

TEST_CASE("messages that cross are noticed", "[schedule_check]") {
  const Schedule whole = some_schedule();
  for (const ActionKind kind : {ActionKind::send_activation, ActionKind::send_gradient,
                                ActionKind::receive_activation, ActionKind::receive_gradient}) {
    for (std::size_t rank = 0; rank < whole.ranks.size(); ++rank) {
      Schedule broken = whole;
      auto& actions = broken.ranks[rank];
      const auto of_kind = [&](const Action& action) { return action.kind == kind; };
      const auto first = std::find_if(actions.begin(), actions.end(), of_kind);
      if (first == actions.end()) {
        continue;
      }
      const auto second = std::find_if(first + 1, actions.end(), of_kind);
      std::swap(*first, *second);
      INFO(whole.name << " rank " << rank << " " << name(kind));
      CHECK(defect_of(broken) != "");
    }
  }
}

TEST_CASE("an action in another slot, chunk or micro-batch is noticed", "[schedule_check]") {
  const Schedule whole = some_schedule();
  for (std::size_t rank = 0; rank < whole.ranks.size(); ++rank) {
    for (std::size_t index = 0; index < whole.ranks[rank].size(); ++index) {
      INFO(whole.name << " rank " << rank << " action " << index);
      Schedule broken = whole;
      broken.ranks[rank][index].slot += 1;
      CHECK(defect_of(broken) != "");
      broken = whole;
      broken.ranks[rank][index].micro_batch = (broken.ranks[rank][index].micro_batch + 1) % 5;
      CHECK(defect_of(broken) != "");
      broken = whole;
      broken.ranks[rank][index].chunk ^= 1;
      CHECK(defect_of(broken) != "");
    }
  }
}

TEST_CASE("less memory than a schedule uses is noticed, on every rank and chunk",
          "[schedule_check]") {
  const Schedule whole = some_schedule();
  const auto used = used_slots(whole);
  CHECK_FALSE(check_schedule(whole, used));
  for (std::size_t rank = 0; rank < used.size(); ++rank) {
    for (std::size_t chunk = 0; chunk < used[rank].size(); ++chunk) {
      auto limits = used;
      --limits[rank][chunk];
      const auto defect = check_schedule(whole, limits);
      REQUIRE(defect);
      CHECK_THAT(*defect, ContainsSubstring("rank " + std::to_string(rank)) &&
                              ContainsSubstring("has memory for"));
    }
  }
}

TEST_CASE("lists of nonsense are refused without harm", "[schedule_check]") {
  const Schedule whole = some_schedule();
  std::minstd_rand random(11);
  const auto number = [&] { return static_cast<int>(random()) % 9 - 2; };
  int refused = 0;
  for (int i = 0; i < 500; ++i) {
    Schedule broken = whole;
    for (int damage = 0; damage < 3; ++damage) {
      auto& actions = broken.ranks[random() % broken.ranks.size()];
      const auto kind = static_cast<ActionKind>(random() % 10);  // two of them are none
      actions[random() % actions.size()] = {kind, number(), number(), number()};
    }
    refused += check_schedule(broken) ? 1 : 0;
  }
  CHECK(refused > 490);
}

TEST_CASE("defects are told with rank, action and reason", "[schedule_check]") {
  constexpr auto F = ActionKind::forward;
  constexpr auto B = ActionKind::backward;
  constexpr auto I = ActionKind::backward_input;
  constexpr auto W = ActionKind::backward_weight;
  CHECK(defect_of(one_rank(1, {{F, 0, 0, 0}, {B, 0, 0, 0}})) == "");
  CHECK(defect_of(one_rank(1, {{F, 0, 0, 0}, {I, 0, 0, 0}, {W, 0, 0, 0}})) == "");
  CHECK(defect_of(one_rank(1, {{B, 0, 0, 0}, {F, 0, 0, 0}})) ==
        "rank 0, action 0 (B0) comes before its forward; move it after that");
  CHECK(defect_of(one_rank(1, {{F, 0, 0, 0}, {W, 0, 0, 0}, {I, 0, 0, 0}})) ==
        "rank 0, action 1 (W0) comes before the input half of this backward; move it after "
        "that, or write B for both");
  CHECK(defect_of(one_rank(1, {{F, 0, 0, 0}, {I, 0, 0, 0}})) ==
        "rank 0 has no W0: the backward weight of micro-batch 0 is missing; add it");
  CHECK(defect_of(one_rank(1, {{F, 0, 0, 0}, {I, 0, 0, 0}, {B, 0, 0, 0}})) ==
        "rank 0, action 2 (B0) is done twice; remove one of them");
  CHECK(defect_of(one_rank(2, {{F, 0, 0, 0}, {F, 1, 0, 0}, {B, 0, 0, 0}, {B, 1, 0, 0}})) ==
        "rank 0, action 1 (F1) takes a slot that is in use");
  CHECK_THAT(defect_of(one_rank(1, {{F, 1, 0, 0}, {B, 0, 0, 0}})), ContainsSubstring("action 0"));
  CHECK_THAT(defect_of(one_rank(1, {{F, -1, 0, 0}, {B, 0, 0, 0}})), ContainsSubstring("action 0"));
  CHECK_THAT(defect_of(one_rank(1, {{F, 0, 0, -1}, {B, 0, 0, 0}})), ContainsSubstring("slot -1"));
  Schedule short_of_ranks = one_rank(1, {{F, 0, 0, 0}, {B, 0, 0, 0}});
  short_of_ranks.stages = 2;
  CHECK(defect_of(short_of_ranks) == "1 lists for 2 stages, 1 micro-batches and 1 chunks");
}

TEST_CASE("ranks that wait for each other are found, with the circle they wait in",
          "[schedule_check]") {
  // Rank 0 wants the gradient of micro-batch 0 before it sends the activation of 1; rank 1 wants
  // that activation first.
  constexpr auto F = ActionKind::forward;
  constexpr auto B = ActionKind::backward;
  Schedule schedule =
      lowered({.name = "by hand",
               .stages = 2,
               .micro_batches = 2,
               .chunks = 1,
               .placement = Placement::loop,
               .ranks = {{{F, 0, 0, 0}, {B, 0, 0, 0}, {F, 1, 0, 0}, {B, 1, 0, 0}},
                         {{F, 0, 0, 0}, {F, 1, 0, 0}, {B, 0, 0, 0}, {B, 1, 0, 0}}}});
  const std::string defect = defect_of(schedule);
  CHECK_THAT(defect, ContainsSubstring("deadlock: rank 0, action 3 (B0) waits for rank 1"));
  CHECK_THAT(defect, ContainsSubstring("(F1) waits for rank 0"));
}

TEST_CASE("a list that only a buffering transport could finish is refused", "[schedule_check]") {
  // B1.1 of rank 1 writes the buffer that its gradient 0.1 leaves from. Rank 0 posts that receive
  // one action before B0.1; where that is F3.0, it first waits in F2.1 for what rank 1 makes after
  // B1.1.
  const auto with = [](const std::string& before_b01, const std::string& after) {
    return "F0.0,F1.0,F0.1,F1.1,F2.0,F2.1," + before_b01 + "B0.1," + after +
           "B1.1,B2.1,F3.1,B3.1,B0.0,B1.0,B2.0,B3.0\n"
           "F0.0,F1.0,F0.1,B0.1,F1.1,B1.1,F2.0,F2.1,B2.1,F3.0,F3.1,B3.1,B0.0,B1.0,B2.0,B3.0\n";
  };
  CHECK_NOTHROW(read_schedule_csv(with("", "F3.0,"), "early.csv"));
  CHECK_THROWS_WITH(read_schedule_csv(with("F3.0,", ""), "late.csv"),
                    ContainsSubstring("deadlock") &&
                        ContainsSubstring("(B1.1) waits for what line 1, column ") &&
                        ContainsSubstring("(B0.1) receives"));
}

}  // namespace
}  // namespace fourfold::schedule
