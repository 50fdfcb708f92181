// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/plan/simulate.hpp>

#include <cstddef>
#include <vector>

namespace fourfold::plan {
namespace {

using schedule::ActionKind;

struct Mean {
  double sum_s = 0;
  int count = 0;
  void add(double value_s) {
    sum_s += value_s;
    ++count;
  }
  double value_s() const { return count > 0 ? sum_s / count : 0; }
};

struct StageMeans {
  Mean forward, backward, backward_input, backward_weight;

  Mean& of(ActionKind kind) {
    switch (kind) {
      case ActionKind::forward:
        return forward;
      case ActionKind::backward_input:
        return backward_input;
      case ActionKind::backward_weight:
        return backward_weight;
      default:
        return backward;
    }
  }
  PassCosts costs() const {
    PassCosts costs{forward.value_s(), backward_input.value_s(), backward_weight.value_s(), {}};
    if (backward.count > 0) {
      costs.backward_s = backward.value_s();
    }
    return costs;
  }
};

}  // namespace

ScheduleCosts measured_costs(const schedule::Timeline& measured) {
  std::vector<StageMeans> means(measured.virtual_stages());
  for (const schedule::TimelineEvent& event : measured.events) {
    if (is_compute(event.action.kind)) {
      StageMeans& stage = means[measured.virtual_stage_of(event)];
      stage.of(event.action.kind).add(event.end_s - event.begin_s);
    }
  }
  ScheduleCosts costs;
  for (const StageMeans& stage : means) {
    costs.stages.push_back(stage.costs());
  }
  return costs;
}

}  // namespace fourfold::plan
