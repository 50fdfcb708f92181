// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/plan/simulate.hpp>

#include <cstddef>
#include <map>
#include <vector>

namespace fourfold::plan {

ScheduleCosts measured_costs(const schedule::Timeline& measured) {
  using schedule::ActionKind;
  const std::size_t stages = measured.virtual_stages();
  std::vector<std::map<ActionKind, double>> sums_s(stages);
  std::vector<std::map<ActionKind, int>> counts(stages);
  for (const schedule::TimelineEvent& event : measured.events) {
    if (is_compute(event.action.kind)) {
      const int stage = measured.virtual_stage_of(event);
      sums_s[stage][event.action.kind] += event.end_s - event.begin_s;
      ++counts[stage][event.action.kind];
    }
  }
  ScheduleCosts costs;
  for (std::size_t stage = 0; stage < stages; ++stage) {
    const auto mean_s = [&](ActionKind kind) {
      return counts[stage].contains(kind) ? sums_s[stage][kind] / counts[stage][kind] : 0;
    };
    PassCosts& passes = costs.stages.emplace_back();
    passes.forward_s = mean_s(ActionKind::forward);
    passes.backward_input_s = mean_s(ActionKind::backward_input);
    passes.backward_weight_s = mean_s(ActionKind::backward_weight);
    if (counts[stage].contains(ActionKind::backward)) {
      passes.backward_s = mean_s(ActionKind::backward);
    }
  }
  return costs;
}

}  // namespace fourfold::plan
