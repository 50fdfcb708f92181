// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "vectors/element.hpp"

#include <fourfold/kernels/reference/optimizer.hpp>
#include <fourfold/kernels/reference/stochastic_rounding.hpp>

#include <algorithm>
#include <cmath>

namespace fourfold::kernels::reference {
namespace {

/// Whether there is to be no update.
bool left_out(const float* scale) {
  return scale != nullptr && !std::isfinite(*scale);
}

double scaled_gradient(ConstTensorView gradient, std::int64_t index, const float* scale) {
  const double factor = scale != nullptr ? static_cast<double>(*scale) : 1.0;
  return static_cast<double>(gradient.as<float>()[index]) * factor;
}

void set_parameter(TensorView master, TensorView weight, std::int64_t index, double value,
                   const std::optional<StochasticRounding>& rounding) {
  master.as<float>()[index] = static_cast<float>(value);
  if (weight && rounding) {
    weight.as<BFloat16>()[index] =
        rounded_stochastically(*rounding, index, static_cast<float>(value));
  } else if (weight) {
    write_element(weight, index, value);
  }
}

}  // namespace

void adam(const AdamStep& step, TensorView master, TensorView exp_avg, TensorView exp_avg_sq,
          ConstTensorView gradient, TensorView weight, device::StreamRef /*stream*/) {
  if (left_out(step.gradient_scale)) {
    return;
  }
  const double lr = step.lr;
  const double decay = step.weight_decay;
  const double correction1 = 1.0 - std::pow(step.beta1, static_cast<double>(step.step));
  const double correction2 = 1.0 - std::pow(step.beta2, static_cast<double>(step.step));
  for (std::int64_t i = 0; i < master.elements(); ++i) {
    double p = master.as<float>()[i];
    double g = scaled_gradient(gradient, i, step.gradient_scale);
    if (step.decoupled) {
      p -= lr * decay * p;
    } else {
      g += decay * p;
    }
    const double m =
        step.beta1 * static_cast<double>(exp_avg.as<float>()[i]) + (1.0 - step.beta1) * g;
    const double v =
        step.beta2 * static_cast<double>(exp_avg_sq.as<float>()[i]) + (1.0 - step.beta2) * g * g;
    exp_avg.as<float>()[i] = static_cast<float>(m);
    exp_avg_sq.as<float>()[i] = static_cast<float>(v);
    const double m_hat = m / correction1;
    const double v_hat = v / correction2;
    set_parameter(master, weight, i,
                  p - lr * m_hat / (std::sqrt(v_hat) + static_cast<double>(step.epsilon)),
                  step.stochastic_rounding);
  }
}

void sgd(const SgdStep& step, TensorView master, TensorView momentum_buffer,
         ConstTensorView gradient, TensorView weight, device::StreamRef /*stream*/) {
  if (left_out(step.gradient_scale)) {
    return;
  }
  for (std::int64_t i = 0; i < master.elements(); ++i) {
    const double p = master.as<float>()[i];
    const double g = scaled_gradient(gradient, i, step.gradient_scale) +
                     static_cast<double>(step.weight_decay) * p;
    double buffer = g;
    if (momentum_buffer) {
      buffer +=
          static_cast<double>(step.momentum) * static_cast<double>(momentum_buffer.as<float>()[i]);
      momentum_buffer.as<float>()[i] = static_cast<float>(buffer);
    }
    set_parameter(master, weight, i, p - static_cast<double>(step.lr) * buffer,
                  step.stochastic_rounding);
  }
}

void outer_nesterov(const OuterStep& step, TensorView outer, TensorView velocity, TensorView master,
                    device::StreamRef /*stream*/) {
  const double lr = step.lr;
  const double momentum = step.momentum;
  for (std::int64_t i = 0; i < master.elements(); ++i) {
    const double before = outer.as<float>()[i];
    const double delta = before - static_cast<double>(master.as<float>()[i]);
    const double v = momentum * static_cast<double>(velocity.as<float>()[i]) + delta;
    velocity.as<float>()[i] = static_cast<float>(v);
    outer.as<float>()[i] = static_cast<float>(before - lr * (delta + momentum * v));
    master.as<float>()[i] = outer.as<float>()[i];
  }
}

}  // namespace fourfold::kernels::reference
