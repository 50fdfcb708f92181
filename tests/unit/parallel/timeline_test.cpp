// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/parallel/timeline.hpp>

#include <catch2/catch_test_macros.hpp>

namespace fourfold::parallel {
namespace {

TEST_CASE("a timeline is summed up per rank, transfers left out", "[timeline]") {
  constexpr auto F = ActionKind::forward;
  constexpr auto B = ActionKind::backward;
  const Timeline timeline{.name = "two ranks",
                          .stages = 2,
                          .chunks = 1,
                          .placement = Placement::loop,
                          .events = {{1, {B, 0, 0, 0}, 3, 5},
                                     {0, {F, 0, 0, 0}, 1, 2},
                                     {0, {ActionKind::send_activation, 0, 0, 0}, 0, 9},
                                     {0, {B, 0, 0, 0}, 5, 7},
                                     {1, {F, 0, 0, 0}, 2, 2.5}}};
  const TimelineSummary summary = summarize(timeline);
  CHECK(summary.begin_s == 1);
  CHECK(summary.end_s == 7);
  CHECK(summary.makespan_s() == 6);
  CHECK(summary.ranks[0].busy_s == 3);
  CHECK(summary.ranks[1].busy_s == 2.5);
  CHECK(summary.ranks[1].begin_s == 2);
  CHECK(summary.ranks[1].waiting_s() == 0.5);
  CHECK(summary.waiting_s() == 3);
  CHECK(summary.bubble_s(1) == 3.5);
  CHECK(summary.bubble_s() == 3);
}

TEST_CASE("a timeline without events is empty, not wrong", "[timeline]") {
  const TimelineSummary summary =
      summarize({.name = "", .stages = 2, .chunks = 1, .placement = Placement::loop, .events = {}});
  CHECK(summary.makespan_s() == 0);
  CHECK(summary.bubble_s() == 0);
  CHECK(summary.ranks[1].waiting_s() == 0);
}

}  // namespace
}  // namespace fourfold::parallel
