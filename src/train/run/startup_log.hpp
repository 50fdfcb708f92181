// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What a run says of itself before its first step.
#pragma once

#include <fourfold/comm/mesh.hpp>
#include <fourfold/data/dataset.hpp>
#include <fourfold/device/arena.hpp>
#include <fourfold/runfile/run_config.hpp>
#include <fourfold/telemetry/metrics.hpp>
#include <fourfold/train/step_runner.hpp>

#include <string>
#include <string_view>

namespace fourfold::train {

/// Model, mesh, memory and traffic, in the log.
/// @param dataset  of training
void log_run_summary(const StepRunner& runner, comm::Mesh& mesh, const data::TokenDataset& dataset,
                     const device::Arena& memory);

/// The same for metrics and report. @param known  what only the program knows; the rest is filled
/// in, but where the run begins
telemetry::RunStart run_start(const StepRunner& runner, const comm::Mesh& mesh,
                              telemetry::RunStart known);

// Against what a run's model FLOP utilization (MFU) is counted.
//
//   MFU = flops per token * tokens per second / (ranks * peak of a rank's device)
//
// with model::flops_per_token(): 6N + 6LhT.

/// Peak of a rank's device in FLOP/s: log.peak_tflops, or the data sheet's for 16-bit products.
/// 0 where there is none to count against: f32, an unknown device, or ranks that share devices.
double peak_flop_per_s(const runfile::RunConfig& config, std::string_view device_name);

/// For the log: the formula and its numbers, or that the peak is not known and which key helps;
/// empty where nobody expects the number (on a CPU, in f32).
std::string utilization_text(const runfile::RunConfig& config, std::string_view device_name);

}  // namespace fourfold::train
