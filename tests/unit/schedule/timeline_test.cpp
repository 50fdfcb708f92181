// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/schedule/timeline.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace fourfold::schedule {
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

TimelineSpan collective(const CollectiveFacts& facts, double time_s) {
  return {.rank = 0,
          .name = str(facts),
          .begin_s = 1,
          .end_s = 1 + time_s,
          .kind = SpanKind::communication,
          .collective = facts};
}

TEST_CASE("collectives are added up by communicator and operation", "[timeline]") {
  Timeline timeline;
  timeline.spans = {{0, "load batch", 0, 1},
                    collective({"all_reduce", "dp", 4, 3'000'000'000, 1.5}, 0.5),
                    collective({"all_gather", "zero", 2, 500'000'000, 0.5}, 0.25),
                    collective({"all_gather", "dp", 4, 4'000'000'000, 0.75}, 2),
                    collective({"all_reduce", "dp", 4, 1'000'000'000, 1.5}, 1.5),
                    collective({"all_reduce", "dp", 2, 1'000'000, 1}, 0)};
  // 4 GB in 2 s times 6/4; 4 GB in 2 s times 3/4; 0.5 GB in 0.25 s times 1/2.
  CHECK(collective_lines(timeline) ==
        std::vector<std::string>{
            "dp of 4 ranks: all_reduce 2 times, 4000.00 MB, busbw 3.00 GB/s; all_gather 1 times, "
            "4000.00 MB, busbw 1.50 GB/s",
            "zero of 2 ranks: all_gather 1 times, 500.00 MB, busbw 1.00 GB/s",
            "dp of 2 ranks: all_reduce 1 times, 1.00 MB, busbw 0.00 GB/s"});
  CHECK(total_collectives(timeline)[0].time_s == 2);
  // The other stage has less to move, in a group of its own.
  TimelineSpan other = collective({"all_reduce", "dp", 4, 6'000'000'000, 1.5}, 1);
  other.rank = 1;
  timeline.spans.push_back(other);
  CHECK(total_collectives(timeline)[0].calls == 2);
  other.collective->bytes = 3'000'000'000;
  timeline.spans.push_back(other);
  CHECK(total_collectives(timeline)[0].facts.bytes == 9'000'000'000);
  CHECK(collective_lines({}).empty());
}

TEST_CASE("a timeline without events is empty, not wrong", "[timeline]") {
  const TimelineSummary summary =
      summarize({.name = "", .stages = 2, .chunks = 1, .placement = Placement::loop, .events = {}});
  CHECK(summary.makespan_s() == 0);
  CHECK(summary.bubble_s() == 0);
  CHECK(summary.ranks[1].waiting_s() == 0);
}

}  // namespace
}  // namespace fourfold::schedule
