// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/schedule/schedule.hpp>
#include <fourfold/schedule/timeline.hpp>

namespace fourfold::benchmarks {

/// How long a rank sleeps for each layer, beside computing it.
struct Delays {
  double pass_s = 0;     ///< in the forward pass, and in the backward pass for the input
  double weights_s = 0;  ///< in the backward pass for the weights
};

/// Trains a model of four small layers per rank for a few steps with the real executor over the
/// real transport, every layer lasting as long as `delays` says, and gives the last step as all
/// ranks measured it. Sleeping takes no core, so that there may be more ranks than cores.
/// Collective; the schedule is the same on all ranks.
schedule::Timeline measure_delayed(const schedule::Schedule& schedule, const Delays& delays,
                                   comm::Communicator& world);

/// How long a step takes, one after the other.
struct StepTimes {
  double waiting_s = 0;  ///< all ranks wait for a sum over the ranks behind each step
  double ahead_s = 0;    ///< meanwhile they go ahead with the next one (Pipeline::go_ahead)
};
/// The same model, without updates. Collective.
/// @param count  of steps
StepTimes measure_steps(const schedule::Schedule& schedule, const Delays& delays, int count,
                        comm::Communicator& world);

}  // namespace fourfold::benchmarks
