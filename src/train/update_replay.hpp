// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/runfile/run_config.hpp>
#include <fourfold/train/mesh_trace.hpp>

#include <cstddef>
#include <vector>

namespace fourfold::train {

/// How far the weights of one tensor are from those that a step should have made.
struct UpdateError {
  /// |weights - expected| / |expected - weights before|, in the L2 norm: a share of the update.
  /// What the rounding of weights to f32 can make (2^-23 of their norm) does not count
  double error = 0;
  std::size_t element = 0;  ///< the furthest off
  float expected = 0;       ///< there
};

/// Makes every update of a trace again, from the trace's own gradients and the weights before it,
/// with the reference bodies of clipping and optimizer, and holds the trace's weights against them.
/// @return [step][tensor]
std::vector<std::vector<UpdateError>> replay_updates(const MeshTrace& trace,
                                                     const runfile::OptimConfig& optim);

}  // namespace fourfold::train
