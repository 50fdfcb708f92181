// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fourfold::benchmarks {

/// What host_step measured, all ranks together.
struct StepReport {
  std::string device;
  std::string precision;
  int ranks = 1;
  std::int64_t batch = 0;
  std::int64_t tokens = 0;
  std::vector<double> step_s;
  std::vector<double> loss;
  double ceiling_flop_per_s = 0;  ///< best product of the step on every rank at once, summed
  double flop_per_token = 0;
};

/// One JSON object with the rates and shares that follow.
std::string to_json(const StepReport& report);

}  // namespace fourfold::benchmarks
