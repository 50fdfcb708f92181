// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Against what a run's model FLOP utilization (MFU) is counted.
///
///   MFU = flops per token * tokens per second / (ranks * peak of a rank's device)
///
/// with model::flops_per_token(): 6N + 6LhT.
#pragma once

#include <fourfold/runfile/run_config.hpp>

#include <string>
#include <string_view>

namespace fourfold::train {

/// Peak of a rank's device in FLOP/s: log.peak_tflops, or the data sheet's for 16-bit products.
/// 0 where there is none to count against: f32, an unknown device, or ranks that share devices.
double peak_flop_per_s(const runfile::RunConfig& config, std::string_view device_name);

/// For the log: the formula and its numbers, or that the peak is not known and which key helps;
/// empty where nobody expects the number (on a CPU, in f32).
std::string utilization_text(const runfile::RunConfig& config, std::string_view device_name);

}  // namespace fourfold::train
