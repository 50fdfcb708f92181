// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "vectors/element.hpp"
#include "weight_copy.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/kernels/optimizer.hpp>

#include <algorithm>
#include <bit>
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

void clip_scale(ConstTensorView sum_of_squares, float max_norm, float loss_scale, TensorView norm,
                TensorView scale, device::StreamRef /*stream*/) {
  const double length = std::sqrt(*sum_of_squares.as<double>()) / static_cast<double>(loss_scale);
  *norm.as<float>() = static_cast<float>(length);
  if (!std::isfinite(*norm.as<float>())) {
    *scale.as<float>() = std::nanf("");
    return;
  }
  const double factor =
      max_norm > 0 ? std::min(1.0, static_cast<double>(max_norm) / (length + 1e-6)) : 1.0;
  *scale.as<float>() = static_cast<float>(factor / static_cast<double>(loss_scale));
}

void void_scale(ConstTensorView norm, TensorView scale, device::StreamRef /*stream*/) {
  if (!std::isfinite(*norm.as<float>())) {
    *scale.as<float>() = std::nanf("");
  }
}

BFloat16 rounded_stochastically(const StochasticRounding& rounding, std::int64_t i, float value) {
  if (std::isnan(value) || std::isinf(value)) {
    return BFloat16(value);
  }
  const std::int64_t j = rounding.begin + i;
  const std::int64_t number =
      rounding.first + j / rounding.row_elements * rounding.row_stride + j % rounding.row_elements;
  const std::uint32_t bits = rounding_bits(rounding_block(rounding.key, number), number);
  // The neighbour towards zero keeps the upper half of the word; the other one is the next.
  BFloat16 inner;
  inner.bits = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
  BFloat16 outer;
  outer.bits = static_cast<std::uint16_t>(inner.bits + 1);
  const double from = static_cast<float>(inner);
  const double to = std::isinf(static_cast<float>(outer))
                        ? std::copysign(0x1p128, from)
                        : static_cast<double>(static_cast<float>(outer));
  const double share = (static_cast<double>(value) - from) / (to - from);
  return bits < 65536.0 * (1.0 - share) ? inner : outer;
}

void round_stochastically(const StochasticRounding& rounding, ConstTensorView source,
                          TensorView target, device::StreamRef /*stream*/, Place /*place*/) {
  FOURFOLD_EXPECT(source.elements() == target.elements());
  for (std::int64_t i = 0; i < source.elements(); ++i) {
    target.as<BFloat16>()[i] = rounded_stochastically(rounding, i, source.as<float>()[i]);
  }
}

}  // namespace fourfold::kernels::reference
