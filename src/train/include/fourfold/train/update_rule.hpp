// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What an optimizer does with its parameters. A run has one rule per group of parameters
/// (model::OptimizerGroup); groups with the same rule are one.
#pragma once

#include <fourfold/base/box.hpp>
#include <fourfold/base/tensor_view.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/kernels/operands.hpp>
#include <fourfold/kernels/optimizer.hpp>
#include <fourfold/model/parameter_table.hpp>
#include <fourfold/parallel/whole_matrices.hpp>
#include <fourfold/runfile/run_config.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

namespace fourfold::train {

/// What is the same for all elements of a step.
struct UpdateStep {
  std::int64_t update = 1;  ///< 1 for the first update of a run: bias corrections
  double lr = 0;
  /// device scalar (f32) multiplied into every gradient; where it is not finite nothing may change
  const float* gradient_scale = nullptr;
};

struct Elements;

/// Knows its own numbers (decay, momentum) and keeps no state between updates.
class UpdateRule {
 public:
  static constexpr std::size_t most_states = 4;

  virtual ~UpdateRule() = default;
  UpdateRule() = default;
  UpdateRule(const UpdateRule&) = delete;
  UpdateRule& operator=(const UpdateRule&) = delete;

  /// The names of what it keeps of each parameter, as a checkpoint has them ("exp_avg"): f32, of
  /// the parameter's shape, zero before the first update; at most most_states, the same on all
  /// ranks.
  virtual std::span<const std::string_view> states() const noexcept = 0;

  /// What an update is to make of a whole parameter, by plain and serial bodies: `fourfold verify`
  /// holds every update against it. In the host's memory, with step.gradient_scale.
  /// @param whole  without a weight; its elements are those of a tensor of this shape
  virtual void reference_update(const Shape& shape, const Elements& whole,
                                const UpdateStep& step) const = 0;
};

/// States of a parameter, or of a part of it, in the order of UpdateRule::states(); absent beyond.
using States = std::array<TensorView, UpdateRule::most_states>;

/// What is updated together, wherever it is. Rank 1, as many elements each.
struct Elements {
  Range state;  ///< of the share
  TensorView master;
  States states;
  ConstTensorView gradient;
  TensorView weight;  ///< absent: the master is what products read
  bool decay = false;
  kernels::MemorySpace place = kernels::MemorySpace::device;
  std::optional<kernels::StochasticRounding> rounding = {};  ///< of weights; absent: to nearest

  /// Those at `part` of the share's state.
  Elements at(Range part) const;
};

/// Updates every element by itself, so that any share of the parameters gives the same bits.
class ElementwiseRule : public UpdateRule {
 public:
  /// Makes new masters and states, and weights from the masters. Ordered on `stream`, or on the
  /// calling thread where elements.place is the host.
  virtual void update(const Elements& elements, const UpdateStep& step,
                      device::StreamRef stream) const = 0;
};

/// What one rank has of one matrix: whole rows of its tensor-parallel part, maybe none. f32
/// [rows, columns], in device memory.
struct MatrixShard {
  std::size_t matrix = 0;  ///< for WholeMatrices
  const model::ParameterSpec* spec = nullptr;
  TensorView master;
  States states;
  TensorView gradient;  ///< of the global batch; may be written
  TensorView scratch;   ///< rank 1, of scratch_elements()
};

/// Updates whole matrices: what it computes of one may depend on all its elements.
class MatrixRule : public UpdateRule {
 public:
  /// f32 elements that update() needs beside its shard and what `WholeMatrices` has.
  virtual std::int64_t scratch_elements(const Shape& whole, const Shape& part) const noexcept = 0;
  /// Makes new masters and states of the shard. Collective over the ranks that hold the matrix
  /// (matrices.shard_group() and tp()), which all call it, for the same matrices in the same order.
  /// Ordered on `stream`. The bits must not depend on how the matrix is cut.
  virtual void update(const MatrixShard& shard, parallel::WholeMatrices& matrices,
                      const UpdateStep& step, device::StreamRef stream) const = 0;
};

/// One for each group of parameters, by model::OptimizerGroup.
using UpdateRules = std::array<std::shared_ptr<const UpdateRule>, model::optimizer_group_count>;

inline const std::shared_ptr<const UpdateRule>& rule_of(const UpdateRules& rules,
                                                        model::OptimizerGroup group) {
  return rules[static_cast<std::size_t>(group)];
}

/// The rule of a group that is updated by whole matrices; else nullptr.
inline const MatrixRule* matrix_rule_of(const UpdateRules& rules, model::OptimizerGroup group) {
  return dynamic_cast<const MatrixRule*>(rule_of(rules, group).get());
}

/// AdamW, Adam or SGD with momentum (kernels/optimizer.hpp has the formulas), for all groups but
/// the frozen one, whose rule changes nothing. The one place that knows which rules there are.
UpdateRules rules_of(const runfile::OptimConfig& config);

}  // namespace fourfold::train
