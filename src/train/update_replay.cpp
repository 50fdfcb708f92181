// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "update_replay.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/kernels/reference/gradient_scale.hpp>
#include <fourfold/kernels/reference/optimizer.hpp>

#include <array>
#include <cmath>
#include <numeric>

namespace fourfold::train {
namespace {

using Values = std::vector<float>;

TensorView flat(Values& values) {
  return {values.data(), Shape{std::ssize(values)}};
}

double sum_of_squares(const Values& values) {
  return std::accumulate(values.begin(), values.end(), 0.0, [](double sum, float value) {
    return sum + static_cast<double>(value) * static_cast<double>(value);
  });
}

double difference(float a, float b) {
  const double result = std::fabs(static_cast<double>(a) - static_cast<double>(b));
  return std::isnan(result) ? INFINITY : result;
}

/// What clipping multiplies the gradients of a step with; NaN when they overflowed.
float clipping(const ParameterValues& gradients, double clip_norm) {
  double squares = 0;
  for (const Values& values : gradients) {
    squares += sum_of_squares(values);
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
    const double distance = difference(after[i], expected[i]);
    off += distance * distance;
    update += std::pow(difference(expected[i], before[i]), 2);
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

/// One tensor and its moments on the way through the steps.
class Replay {
 public:
  Replay(const runfile::OptimConfig& optim, const model::ParameterSpec& spec, const Values& initial)
      : optim_(optim),
        weight_decay_(static_cast<float>(spec.decays ? optim.weight_decay : 0.0)),
        before_(&initial),
        moments_{Values(initial.size()), Values(initial.size())} {}

  UpdateError step(std::int64_t number, float scale, const Values& gradient, const Values& after) {
    FOURFOLD_EXPECT(gradient.size() == before_->size() && after.size() == before_->size());
    Values expected = *before_;
    update(number, scale, gradient, expected);
    applied_ += std::isfinite(scale) ? 1 : 0;
    const UpdateError result = error_of(*before_, after, expected);
    before_ = &after;
    return result;
  }

 private:
  void update(std::int64_t number, float scale, const Values& gradient, Values& weights) {
    const auto lr = static_cast<float>(runfile::learning_rate(optim_.schedule, number));
    const ConstTensorView gradients(gradient.data(), Shape{std::ssize(gradient)});
    if (optim_.name == runfile::OptimizerKind::sgd) {
      kernels::reference::sgd({.lr = lr,
                               .momentum = static_cast<float>(optim_.momentum),
                               .weight_decay = weight_decay_,
                               .gradient_scale = &scale},
                              flat(weights), flat(moments_[0]), gradients, {}, {});
      return;
    }
    kernels::reference::adam({.lr = lr,
                              .beta1 = optim_.beta1,
                              .beta2 = optim_.beta2,
                              .epsilon = static_cast<float>(optim_.epsilon),
                              .weight_decay = weight_decay_,
                              .decoupled = optim_.name == runfile::OptimizerKind::adamw,
                              .step = applied_ + 1,
                              .gradient_scale = &scale},
                             flat(weights), flat(moments_[0]), flat(moments_[1]), gradients, {},
                             {});
  }

  const runfile::OptimConfig& optim_;
  float weight_decay_;
  const Values* before_;
  std::int64_t applied_ = 0;
  std::array<Values, 2> moments_;
};

}  // namespace

std::vector<std::vector<UpdateError>> replay_updates(const MeshTrace& trace,
                                                     const runfile::OptimConfig& optim) {
  std::vector<float> scales;
  for (const StepTrace& step : trace.steps) {
    scales.push_back(clipping(step.gradients, optim.clip_norm));
  }
  std::vector<std::vector<UpdateError>> errors(trace.steps.size(),
                                               std::vector<UpdateError>(trace.table.size()));
  for (std::size_t tensor = 0; tensor < trace.table.size(); ++tensor) {
    Replay replay(optim, trace.table[tensor], trace.initial_weights[tensor]);
    for (std::size_t step = 0; step < trace.steps.size(); ++step) {
      errors[step][tensor] =
          replay.step(static_cast<std::int64_t>(step), scales[step],
                      trace.steps[step].gradients[tensor], trace.steps[step].weights[tensor]);
    }
  }
  return errors;
}

}  // namespace fourfold::train
