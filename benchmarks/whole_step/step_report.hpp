// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "timed_steps.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fourfold::benchmarks {

/// What the steps did to the memory of a device.
struct DeviceMemory {
  std::size_t total_bytes = 0;
  std::size_t used_bytes = 0;  ///< after the steps, by all processes and libraries
  std::vector<std::pair<std::string, std::size_t>> tensors;  ///< by what they are for
};

/// What a benchmark of whole steps measured, all ranks together.
struct StepReport {
  std::string model;
  std::string device;
  std::string precision;
  std::string data = "random";
  int ranks = 1;
  std::int64_t batch = 0;        ///< sequences of a step
  std::int64_t micro_batch = 0;  ///< of one forward pass on a rank
  std::int64_t tokens = 0;       ///< of a sequence
  std::int64_t parameters = 0;
  StepTimes times = {};
  double flop_per_token = 0;  ///< model::flops_per_token()
  /// Best product of the step on every rank at once, summed.
  std::optional<double> ceiling_flop_per_s = {};
  /// What the device's maker says of its dense products in this precision.
  std::optional<double> peak_flop_per_s = {};
  std::optional<DeviceMemory> memory = {};
};

/// @pre !seconds.empty()
double median(std::vector<double> seconds);

/// One JSON object with the rates and shares that follow.
std::string to_json(const StepReport& report);

}  // namespace fourfold::benchmarks
