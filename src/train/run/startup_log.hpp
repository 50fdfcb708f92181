// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What a run says of itself before its first step.
#pragma once

#include <fourfold/comm/mesh.hpp>
#include <fourfold/data/dataset.hpp>
#include <fourfold/device/arena.hpp>
#include <fourfold/telemetry/metrics.hpp>
#include <fourfold/train/step_runner.hpp>

namespace fourfold::train {

/// What is set up; borrowed.
struct RunFacts {
  const ResolvedRun& run;
  comm::Mesh& mesh;
  const data::TokenDataset& dataset;  ///< of training
  const StepRunner& runner;
  const device::Arena& memory;
};

/// Model, mesh, memory and traffic, in the log.
void log_run_summary(const RunFacts& facts);

/// The same for metrics and report. @param known  what only the program knows; the rest is filled
/// in, but where the run begins
telemetry::RunStart run_start(const RunFacts& facts, telemetry::RunStart known);

}  // namespace fourfold::train
