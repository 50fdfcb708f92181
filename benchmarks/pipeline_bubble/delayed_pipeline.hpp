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

}  // namespace fourfold::benchmarks
