// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "step_report.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace fourfold::benchmarks {
namespace {

using Json = nlohmann::ordered_json;

/// The median of each phase over the recorded steps.
Json phases_of(const std::vector<PhaseTimes>& steps) {
  Json object = Json::object();
  for (const auto& [name, phase] :
       {std::pair{"load_s", &PhaseTimes::load_s}, std::pair{"forward_s", &PhaseTimes::forward_s},
        std::pair{"backward_s", &PhaseTimes::backward_s},
        std::pair{"reduce_s", &PhaseTimes::reduce_s},
        std::pair{"update_s", &PhaseTimes::update_s}}) {
    std::vector<double> seconds;
    std::ranges::transform(steps, std::back_inserter(seconds), phase);
    object[name] = median(std::move(seconds));
  }
  return object;
}

Json memory_of(const DeviceMemory& memory) {
  Json tensors = Json::object();
  for (const auto& [use, bytes] : memory.tensors) {
    tensors[use] = bytes;
  }
  return {{"total_bytes", memory.total_bytes},
          {"used_bytes", memory.used_bytes},
          {"tensor_bytes", std::move(tensors)}};
}

}  // namespace

double median(std::vector<double> seconds) {
  const auto middle = seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

std::string to_json(const StepReport& report) {
  const auto tokens = static_cast<double>(report.batch * report.tokens);
  const std::vector<double>& step_s = report.times.step_s;
  const double best = tokens / std::ranges::min(step_s);
  const double typical = tokens / median(step_s);
  Json object{{"model", report.model},
              {"device", report.device},
              {"precision", report.precision},
              {"data", report.data},
              {"ranks", report.ranks},
              {"batch", report.batch},
              {"micro_batch", report.micro_batch},
              {"tokens", report.tokens},
              {"parameters", report.parameters},
              {"step_s", step_s},
              {"loss", report.times.loss},
              {"best_tokens_per_s", best},
              {"median_tokens_per_s", typical},
              {"flop_per_token", report.flop_per_token}};
  if (report.ceiling_flop_per_s) {
    object["ceiling_gflop_per_s"] = *report.ceiling_flop_per_s * 1e-9;
    object["share_of_ceiling"] = best * report.flop_per_token / *report.ceiling_flop_per_s;
  }
  if (report.peak_flop_per_s) {
    object["peak_tflop_per_s"] = *report.peak_flop_per_s * 1e-12;
    object["mfu"] = typical * report.flop_per_token / *report.peak_flop_per_s;
  }
  if (!report.times.phases.empty()) {
    object["phases"] = phases_of(report.times.phases);
  }
  if (report.memory) {
    object["memory"] = memory_of(*report.memory);
  }
  return object.dump(2);
}

}  // namespace fourfold::benchmarks
