// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mesh_walk.hpp"

#include <fourfold/runfile/run_config.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
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

/// Makes the updates of a run again, step by step, with the reference bodies of clipping and
/// optimizer: from the run's own gradients and its weights before each, with moments of its own.
class UpdateReplay {
 public:
  /// @param optim, table  borrowed
  UpdateReplay(const runfile::OptimConfig& optim, const std::vector<model::ParameterSpec>& table);

  /// The next step: holds the weights after it against what the gradients make of those before it.
  /// A step whose gradients are not finite is one that changes nothing.
  /// @return per tensor
  std::vector<UpdateError> step(const ParameterValues& before, const ParameterValues& gradients,
                                const ParameterValues& after);

 private:
  /// Makes `weights` what the step of number steps_ makes of them.
  void update(std::size_t tensor, float scale, const std::vector<float>& gradient,
              std::vector<float>& weights);

  const runfile::OptimConfig* optim_;
  const std::vector<model::ParameterSpec>* table_;
  std::array<ParameterValues, 2> moments_;
  std::int64_t steps_ = 0;
  std::int64_t applied_ = 0;
};

}  // namespace fourfold::train
