// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/tensor_view.hpp>
#include <fourfold/device/arena.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/model/parameters.hpp>
#include <fourfold/runfile/run_config.hpp>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace fourfold::train {

/// The optimizer's state of one kind ("exp_avg", "exp_avg_sq", "momentum"): f32, with the element
/// offsets of Parameters::masters(), so that a parameter's part is moment.flat at Parameter::flat.
struct Moment {
  std::string_view name;
  TensorView flat;
};

/// The names of the moments that an optimizer keeps, in the order of Optimizer::moments().
std::span<const std::string_view> moment_names(runfile::OptimizerKind kind) noexcept;

/// AdamW, Adam or SGD with momentum over the flat memory of Parameters (kernels/optimizer.hpp has
/// the formulas). Every element is updated by itself, so any cut of the memory gives the same bits.
class Optimizer {
 public:
  /// Takes the moments from `arena`; they start at zero. Parameters are borrowed.
  Optimizer(const runfile::OptimConfig& config, const model::Parameters& parameters,
            device::Arena& arena);

  /// Updates masters (and the weights made from them) with the gradients as they are.
  /// @param update          1 for the first update of a run: bias corrections
  /// @param gradient_scale  device scalar (f32) multiplied into every gradient; where it is not
  ///                        finite nothing is changed
  void update(std::int64_t update, double lr, const float* gradient_scale,
              device::StreamRef stream) const;

  std::span<const Moment> moments() const noexcept { return moments_; }

 private:
  void update_range(const model::DecayRange& range, std::int64_t update, double lr,
                    const float* gradient_scale, device::StreamRef stream) const;

  runfile::OptimConfig config_;
  const model::Parameters* parameters_;
  std::vector<Moment> moments_;
};

}  // namespace fourfold::train
