// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "update_replay.hpp"

#include "tensor_difference.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/kernels/optimizer.hpp>

#include <cmath>

namespace fourfold::train {
namespace {

using Values = std::vector<float>;

TensorView flat(Values& values) {
  return {values.data(), Shape{std::ssize(values)}};
}

/// What clipping multiplies the gradients of a step with; NaN when they overflowed.
float clipping(const std::vector<model::ParameterSpec>& table, const ParameterValues& gradients,
               double clip_norm) {
  double squares = 0;
  for (std::size_t tensor = 0; tensor < table.size(); ++tensor) {
    squares += table[tensor].is_trainable() ? sum_of_squares(gradients[tensor]) : 0;
  }
  float norm = 0;
  float scale = 1;
  const Shape scalar{1};
  kernels::reference::clip_scale({&squares, scalar}, static_cast<float>(clip_norm), 1.0F,
                                 {&norm, scalar}, {&scale, scalar}, {});
  return scale;
}

UpdateError error_of(const Values& before, const Values& after, const Values& expected) {
  constexpr double rounding = 0x1p-23;
  UpdateError result;
  double off = 0;
  double update = 0;
  double furthest = -1;
  for (std::size_t i = 0; i < after.size(); ++i) {
    const double distance = difference_of(after[i], expected[i]);
    off += distance * distance;
    update += std::pow(difference_of(expected[i], before[i]), 2);
    if (distance > furthest) {
      furthest = distance;
      result.element = i;
      result.expected = expected[i];
    }
  }
  const double beyond = std::sqrt(off) - rounding * std::sqrt(sum_of_squares(expected));
  if (std::isnan(beyond) || beyond > 0) {
    const double share = beyond / std::sqrt(update);
    result.error = std::isnan(share) ? INFINITY : share;
  }
  return result;
}

}  // namespace

UpdateReplay::UpdateReplay(const runfile::OptimConfig& optim,
                           const std::vector<model::ParameterSpec>& table)
    : optim_(&optim), table_(&table) {
  for (ParameterValues& moments : moments_) {
    for (const model::ParameterSpec& spec : table) {
      moments.emplace_back(spec.shape.elements());
    }
  }
}

std::vector<UpdateError> UpdateReplay::step(const ParameterValues& before,
                                            const ParameterValues& gradients,
                                            const ParameterValues& after) {
  const float scale = clipping(*table_, gradients, optim_->clip_norm);
  std::vector<UpdateError> errors;
  for (std::size_t tensor = 0; tensor < table_->size(); ++tensor) {
    FOURFOLD_EXPECT(gradients[tensor].size() == moments_[0][tensor].size() &&
                    before[tensor].size() == moments_[0][tensor].size() &&
                    after[tensor].size() == moments_[0][tensor].size());
    Values expected = before[tensor];
    if ((*table_)[tensor].is_trainable()) {
      update(tensor, scale, gradients[tensor], expected);
    }
    errors.push_back(error_of(before[tensor], after[tensor], expected));
  }
  ++steps_;
  applied_ += std::isfinite(scale) ? 1 : 0;
  return errors;
}

void UpdateReplay::update(std::size_t tensor, float scale, const Values& gradient,
                          Values& weights) {
  const auto lr = static_cast<float>(runfile::learning_rate(optim_->schedule, steps_));
  const auto weight_decay =
      static_cast<float>((*table_)[tensor].decay ? optim_->weight_decay : 0.0);
  const ConstTensorView gradients(gradient.data(), Shape{std::ssize(gradient)});
  if (optim_->name == runfile::OptimizerKind::sgd) {
    kernels::reference::sgd({.lr = lr,
                             .momentum = static_cast<float>(optim_->momentum),
                             .weight_decay = weight_decay,
                             .gradient_scale = &scale},
                            flat(weights), flat(moments_[0][tensor]), gradients, {}, {});
    return;
  }
  kernels::reference::adam({.lr = lr,
                            .beta1 = optim_->beta1,
                            .beta2 = optim_->beta2,
                            .epsilon = static_cast<float>(optim_->epsilon),
                            .weight_decay = weight_decay,
                            .decoupled = optim_->name == runfile::OptimizerKind::adamw,
                            .step = applied_ + 1,
                            .gradient_scale = &scale},
                           flat(weights), flat(moments_[0][tensor]), flat(moments_[1][tensor]),
                           gradients, {}, {});
}

}  // namespace fourfold::train
