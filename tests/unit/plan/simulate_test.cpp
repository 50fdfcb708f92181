// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/plan/simulate.hpp>
#include <fourfold/schedule/schedule.hpp>
#include <fourfold/schedule/schedule_generators.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

namespace fourfold::plan {
namespace {

using schedule::ActionKind;
using schedule::Schedule;
using schedule::Timeline;
using schedule::TimelineEvent;

/// When an action begins and ends.
std::pair<double, double> times_of(const Timeline& timeline, int rank, ActionKind kind,
                                   int micro_batch, int chunk = 0) {
  const auto found = std::ranges::find_if(timeline.events, [&](const TimelineEvent& event) {
    return event.rank == rank && event.action.kind == kind &&
           event.action.micro_batch == micro_batch && event.action.chunk == chunk;
  });
  REQUIRE(found != timeline.events.end());
  return {found->begin_s, found->end_s};
}

TEST_CASE("a step of two micro-batches on two ranks is timed as by hand", "[simulate]") {
  // Rank 0 has a dear backward; rank 1 a dear forward; messages take 10.
  const Schedule schedule = schedule::read_schedule_csv("F0,F1,B0,B1\nF0,B0,F1,B1\n", "by hand");
  const Timeline timeline = simulate(schedule, {{{1, 2, 3}, {4, 1, 1}}, {10}});
  using Times = std::pair<double, double>;
  CHECK(times_of(timeline, 0, ActionKind::forward, 0) == Times{0, 1});
  CHECK(times_of(timeline, 0, ActionKind::send_activation, 0) == Times{1, 11});
  CHECK(times_of(timeline, 1, ActionKind::receive_activation, 0) == Times{0, 11});
  CHECK(times_of(timeline, 0, ActionKind::forward, 1) == Times{1, 2});
  CHECK(times_of(timeline, 1, ActionKind::forward, 0) == Times{11, 15});
  CHECK(times_of(timeline, 1, ActionKind::backward, 0) == Times{15, 17});
  // Only now is rank 1's slot free for the second activation, which waits since 2.
  CHECK(times_of(timeline, 0, ActionKind::send_activation, 1) == Times{2, 27});
  CHECK(times_of(timeline, 1, ActionKind::forward, 1) == Times{27, 31});
  CHECK(times_of(timeline, 0, ActionKind::backward, 0) == Times{27, 32});
  CHECK(times_of(timeline, 1, ActionKind::backward, 1) == Times{31, 33});
  CHECK(times_of(timeline, 0, ActionKind::backward, 1) == Times{43, 48});
  const auto summary = summarize(timeline);
  CHECK(summary.makespan_s() == 48);
  CHECK(summary.bubble_s(0) == 48 - 12);
  CHECK(summary.bubble_s(1) == 48 - 12);
}

TEST_CASE("messages of one channel go one after the other", "[simulate]") {
  const Schedule schedule =
      schedule::make_schedule({.name = "gpipe", .stages = 2, .micro_batches = 3});
  const Timeline timeline = simulate(schedule, even_costs(schedule, {1, 1, 1}, 5));
  CHECK(times_of(timeline, 1, ActionKind::forward, 0).first == 6);
  CHECK(times_of(timeline, 1, ActionKind::forward, 1).first == 11);
  CHECK(times_of(timeline, 1, ActionKind::forward, 2).first == 16);
}

TEST_CASE("chunks on the same rank hand over without a message", "[simulate]") {
  const Schedule schedule =
      schedule::make_schedule({.name = "zb-v", .stages = 1, .micro_batches = 4});
  const Timeline timeline = simulate(schedule, even_costs(schedule, {2, 2, 2}, 100));
  CHECK(summarize(timeline).makespan_s() == 4 * 6);
  CHECK(timeline.events.size() == 4 * 6);
}

TEST_CASE("links delay a step, but by no more than all their messages", "[simulate]") {
  const auto name = GENERATE("1f1b", "interleaved", "zb-h1", "zb-v");
  const Schedule schedule =
      schedule::make_schedule({.name = name, .stages = 4, .micro_batches = 12});
  const auto makespan = [&](double link_s) {
    return summarize(simulate(schedule, even_costs(schedule, {2, 2, 2}, link_s))).makespan_s();
  };
  CAPTURE(name);
  CHECK(makespan(0.25) > makespan(0));
  CHECK(makespan(0.5) > makespan(0.25));
  // A message each way per micro-batch and chunk, if nothing ran after them: so it is for 1f1b,
  // whose last rank has one slot and so takes in nothing while it computes.
  CHECK(makespan(0.25) <= makespan(0) + 0.25 * 2 * 12 * schedule.chunks);
}

/// Every rule of an execution, looked up in the times alone: by nobody who made them.
void check_times(const Schedule& schedule, const Timeline& timeline) {
  std::map<std::tuple<int, ActionKind, int>, TimelineEvent> by_stage;  // stage, kind, micro-batch
  std::vector<double> free_s(static_cast<std::size_t>(schedule.stages), 0);
  for (const TimelineEvent& event : timeline.events) {
    if (is_compute(event.action.kind)) {
      CHECK(event.begin_s >= free_s[event.rank]);
      free_s[event.rank] = event.end_s;
      const int stage = schedule.virtual_stage(event.rank, event.action.chunk);
      by_stage[{stage, event.action.kind, event.action.micro_batch}] = event;
    }
  }
  const int last = schedule.virtual_stages() - 1;
  for (const auto& [key, event] : by_stage) {
    const auto [stage, kind, micro_batch] = key;
    if (kind == ActionKind::forward && stage > 0) {
      CHECK(by_stage.at({stage - 1, kind, micro_batch}).end_s <= event.begin_s);
    }
    if (kind != ActionKind::forward && kind != ActionKind::backward_weight) {
      CHECK(by_stage.at({stage, ActionKind::forward, micro_batch}).end_s <= event.begin_s);
      if (stage < last) {
        CHECK(by_stage.at({stage + 1, kind, micro_batch}).end_s <= event.begin_s);
      }
    }
    if (kind == ActionKind::backward_weight) {
      CHECK(by_stage.at({stage, ActionKind::backward_input, micro_batch}).end_s <= event.begin_s);
    }
  }
}

TEST_CASE("no pass begins before what it needs is there, nor two at once", "[simulate]") {
  const auto name = GENERATE("naive", "gpipe", "1f1b", "interleaved", "zb-h1", "zb-v");
  const Schedule schedule =
      schedule::make_schedule({.name = name, .stages = 3, .micro_batches = 7});
  for (const double link_s : {0.0, 0.3}) {
    ScheduleCosts costs = even_costs(schedule, {1, 1.5, 0.7}, link_s);
    costs.stages[1].forward_s = 3;
    const Timeline timeline = simulate(schedule, costs);
    CHECK(timeline.events.size() ==
          schedule.ranks[0].size() + schedule.ranks[1].size() + schedule.ranks[2].size());
    check_times(schedule, timeline);
  }
}

}  // namespace
}  // namespace fourfold::plan
