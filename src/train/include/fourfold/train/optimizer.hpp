// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/tensor_view.hpp>
#include <fourfold/device/arena.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/parallel/parameter_share.hpp>
#include <fourfold/runfile/run_config.hpp>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace fourfold::train {

/// The optimizer's state of one kind ("exp_avg", "exp_avg_sq", "momentum"): f32, with one number
/// per element of the share, so that a piece's part is moment.flat at ParameterShare::Piece::state.
struct Moment {
  std::string_view name;
  TensorView flat;
};

/// The names of the moments that an optimizer keeps, in the order of Optimizer::moments().
std::span<const std::string_view> moment_names(runfile::OptimizerKind kind) noexcept;

/// AdamW, Adam or SGD with momentum over a rank's share of the parameters (kernels/optimizer.hpp
/// has the formulas). Every element is updated by itself, so any share gives the same bits.
class Optimizer {
 public:
  /// Takes the moments from `arena`; they start at zero. The share is borrowed.
  Optimizer(const runfile::OptimConfig& config, const parallel::ParameterShare& share,
            device::Arena& arena);

  /// What is the same for all elements of a step.
  struct Step {
    std::int64_t update = 1;  ///< 1 for the first update of a run: bias corrections
    double lr = 0;
    /// device scalar (f32) multiplied into every gradient; where it is not finite nothing is
    /// changed
    const float* gradient_scale = nullptr;
  };
  /// Updates the masters of a run of the share, and the weights made from them, with the gradients
  /// as they are.
  void update(const parallel::ParameterShare::Run& run, const Step& step,
              device::StreamRef stream) const;
  /// All runs.
  void update(const Step& step, device::StreamRef stream) const;

  std::span<const Moment> moments() const noexcept { return moments_; }

 private:
  runfile::OptimConfig config_;
  const parallel::ParameterShare* share_;
  std::vector<Moment> moments_;
};

}  // namespace fourfold::train
