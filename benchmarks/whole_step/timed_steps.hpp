// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/train/step_runner.hpp>

#include <cstdint>
#include <functional>
#include <vector>

namespace fourfold::benchmarks {

/// Seconds of the parts of one step, between events on its stream; forward and backward are sums
/// over its micro-batches.
struct PhaseTimes {
  double load_s = 0;
  double forward_s = 0;
  double backward_s = 0;
  double reduce_s = 0;
  double update_s = 0;
};

struct StepCounts {
  int warmup = 1;
  int timed = 3;
  int recorded = 0;  ///< further ones, whose phases are noted
};

struct StepTimes {
  std::vector<double> step_s;      ///< of the timed ones, by the clock of the host
  std::vector<double> loss;        ///< of all
  std::vector<PhaseTimes> phases;  ///< of the recorded ones
};

/// Enqueues what fills the batches of a step on the stream.
using NextBatches = std::function<train::StepBatches(std::int64_t step, device::StreamRef stream)>;

/// Makes training steps one after the other, as a trainer does: each is waited for. All ranks of
/// `world` (of the hosts) begin and end each timed one together. Collective.
StepTimes time_steps(train::StepRunner& runner, comm::Communicator& world, const StepCounts& counts,
                     const NextBatches& next, device::StreamRef stream);

}  // namespace fourfold::benchmarks
