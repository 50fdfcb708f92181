// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/plan/simulate.hpp>

#include <map>
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

}  // namespace

ScheduleCosts measured_costs(const schedule::Timeline& measured) {
  std::vector<std::map<ActionKind, Mean>> stages(measured.virtual_stages());
  for (const schedule::TimelineEvent& event : measured.events) {
    if (is_compute(event.action.kind)) {
      Mean& mean = stages[measured.virtual_stage_of(event)][event.action.kind];
      mean.add(event.end_s - event.begin_s);
    }
  }
  ScheduleCosts costs;
  for (std::map<ActionKind, Mean>& means : stages) {
    PassCosts& stage = costs.stages.emplace_back();
    stage.forward_s = means[ActionKind::forward].value_s();
    stage.backward_input_s = means[ActionKind::backward_input].value_s();
    stage.backward_weight_s = means[ActionKind::backward_weight].value_s();
    if (means.contains(ActionKind::backward)) {
      stage.backward_s = means[ActionKind::backward].value_s();
    }
  }
  return costs;
}

}  // namespace fourfold::plan
