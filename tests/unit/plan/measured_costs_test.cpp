// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/plan/simulate.hpp>
#include <fourfold/schedule/schedule_generators.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <string>

namespace fourfold::plan {
namespace {

using schedule::ActionKind;

schedule::Schedule four_stages(const std::string& name) {
  return schedule::make_schedule({.name = name, .stages = 4, .micro_batches = 9});
}

/// Another cost for every virtual stage; all are multiples of 1/8, so that sums are exact.
ScheduleCosts uneven_costs(const schedule::Schedule& schedule) {
  ScheduleCosts costs;
  for (int stage = 0; stage < schedule.virtual_stages(); ++stage) {
    costs.stages.push_back({1 + stage / 8.0, 2 + stage / 4.0, 1.5 - stage / 8.0});
  }
  return costs;
}

TEST_CASE("the costs of a simulated timeline are those it was simulated with", "[measured_costs]") {
  const std::string name = GENERATE("gpipe", "1f1b", "interleaved", "zb-h1", "zb-v");
  CAPTURE(name);
  const schedule::Schedule schedule = four_stages(name);
  const ScheduleCosts costs = uneven_costs(schedule);
  const schedule::Timeline timeline = simulate(schedule, costs);
  const ScheduleCosts measured = measured_costs(timeline);
  REQUIRE(measured.stages.size() == costs.stages.size());
  for (std::size_t stage = 0; stage < costs.stages.size(); ++stage) {
    CHECK(measured.stages[stage].forward_s == costs.stages[stage].forward_s);
    if (schedule.splits_backward()) {
      CHECK(measured.stages[stage].sum_s() == costs.stages[stage].sum_s());
      CHECK(measured.stages[stage].backward_weight_s == costs.stages[stage].backward_weight_s);
    } else {
      CHECK(measured.stages[stage].backward_s ==
            costs.stages[stage].backward_input_s + costs.stages[stage].backward_weight_s);
    }
  }
  CHECK(simulate(schedule, measured).events == timeline.events);
}

TEST_CASE("costs are means over the micro-batches", "[measured_costs]") {
  schedule::Timeline timeline;
  timeline.stages = 1;
  timeline.events = {{0, {ActionKind::forward, 0, 0, 0}, 0, 1},
                     {0, {ActionKind::forward, 1, 0, 1}, 1, 4},
                     {0, {ActionKind::backward, 0, 0, 0}, 4, 8},
                     {0, {ActionKind::backward, 1, 0, 1}, 8, 10}};
  const PassCosts costs = measured_costs(timeline).stages.at(0);
  CHECK(costs.forward_s == 2);
  CHECK(costs.backward_s == 3);
}

TEST_CASE("backward passes in one piece and in halves have a mean each", "[measured_costs]") {
  schedule::Timeline timeline;
  timeline.stages = 1;
  timeline.events = {{0, {ActionKind::forward, 0, 0, 0}, 0, 1},
                     {0, {ActionKind::backward_input, 0, 0, 0}, 1, 3},
                     {0, {ActionKind::backward_weight, 0, 0, 0}, 3, 4},
                     {0, {ActionKind::forward, 1, 0, 0}, 4, 5},
                     {0, {ActionKind::backward, 1, 0, 0}, 5, 9}};
  const PassCosts costs = measured_costs(timeline).stages.at(0);
  CHECK(costs.backward_input_s == 2);
  CHECK(costs.backward_weight_s == 1);
  CHECK(costs.backward_s == 4);
}

}  // namespace
}  // namespace fourfold::plan
