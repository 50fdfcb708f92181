// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "step_report.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace fourfold::benchmarks {

std::string to_json(const StepReport& report) {
  const auto tokens = static_cast<double>(report.batch * report.tokens);
  std::vector<double> ordered = report.step_s;
  std::sort(ordered.begin(), ordered.end());
  const double best = tokens / ordered.front();
  const nlohmann::ordered_json object{
      {"device", report.device},
      {"precision", report.precision},
      {"ranks", report.ranks},
      {"batch", report.batch},
      {"tokens", report.tokens},
      {"step_s", report.step_s},
      {"loss", report.loss},
      {"best_tokens_per_s", best},
      {"median_tokens_per_s", tokens / ordered[ordered.size() / 2]},
      {"ceiling_gflop_per_s", report.ceiling_flop_per_s * 1e-9},
      {"flop_per_token", report.flop_per_token},
      {"share_of_ceiling", best * report.flop_per_token / report.ceiling_flop_per_s}};
  return object.dump(2);
}

}  // namespace fourfold::benchmarks
