// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "vectors/storage.hpp"
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
  const double factor = scale != nullptr ? *scale : 1.0;
  return read_element(gradient, index) * factor;
}

void set_parameter(TensorView master, TensorView weight, std::int64_t index, double value,
                   const std::optional<StochasticRounding>& rounding) {
  float& p = master.as<float>()[index];
  p = static_cast<float>(value);
  if (weight && rounding) {
    weight.as<BFloat16>()[index] = rounded_stochastically(*rounding, index, p);
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
  const double correction1 = 1.0 - std::pow(step.beta1, step.step);
  const double correction2 = 1.0 - std::pow(step.beta2, step.step);
  for (std::int64_t i = 0; i < master.elements(); ++i) {
    double p = read_element(master, i);
    double g = scaled_gradient(gradient, i, step.gradient_scale);
    if (step.decoupled) {
      p -= lr * decay * p;
    } else {
      g += decay * p;
    }
    const double m = step.beta1 * read_element(exp_avg, i) + (1.0 - step.beta1) * g;
    const double v = step.beta2 * read_element(exp_avg_sq, i) + (1.0 - step.beta2) * g * g;
    write_element(exp_avg, i, m);
    write_element(exp_avg_sq, i, v);
    const double m_hat = m / correction1;
    const double v_hat = v / correction2;
    set_parameter(master, weight, i, p - lr * m_hat / (std::sqrt(v_hat) + step.epsilon),
                  step.stochastic_rounding);
  }
}

void sgd(const SgdStep& step, TensorView master, TensorView momentum_buffer,
         ConstTensorView gradient, TensorView weight, device::StreamRef /*stream*/) {
  if (left_out(step.gradient_scale)) {
    return;
  }
  for (std::int64_t i = 0; i < master.elements(); ++i) {
    const double p = read_element(master, i);
    double buffer = scaled_gradient(gradient, i, step.gradient_scale) + step.weight_decay * p;
    if (momentum_buffer) {
      buffer += step.momentum * read_element(momentum_buffer, i);
      write_element(momentum_buffer, i, buffer);
    }
    set_parameter(master, weight, i, p - step.lr * buffer, step.stochastic_rounding);
  }
}

void outer_nesterov(const OuterStep& step, TensorView outer, TensorView velocity, TensorView master,
                    device::StreamRef /*stream*/) {
  const double lr = step.lr;
  const double momentum = step.momentum;
  for (std::int64_t i = 0; i < master.elements(); ++i) {
    const double before = read_element(outer, i);
    const double delta = before - read_element(master, i);
    const double v = momentum * read_element(velocity, i) + delta;
    write_element(velocity, i, v);
    write_element(outer, i, before - lr * (delta + momentum * v));
    write_element(master, i, read_element(outer, i));
  }
}

void clip_scale(ConstTensorView sum_of_squares, float max_norm, float loss_scale, TensorView norm,
                TensorView scale, device::StreamRef /*stream*/) {
  const double length = std::sqrt(*sum_of_squares.as<double>()) / loss_scale;
  write_element(norm, 0, length);
  if (!std::isfinite(*norm.as<float>())) {
    *scale.as<float>() = std::nanf("");
    return;
  }
  const double factor = max_norm > 0 ? std::min(1.0, max_norm / (length + 1e-6)) : 1.0;
  write_element(scale, 0, factor / loss_scale);
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
  BFloat16 outer = inner;
  ++outer.bits;
  const double from = to_float(inner);
  const double next = to_float(outer);
  const double to = std::isinf(next) ? std::copysign(0x1p128, from) : next;
  const double share = (value - from) / (to - from);
  return bits < 65536.0 * (1.0 - share) ? inner : outer;
}

void round_stochastically(const StochasticRounding& rounding, ConstTensorView source,
                          TensorView target, device::StreamRef /*stream*/, MemorySpace /*place*/) {
  FOURFOLD_EXPECT(source.elements() == target.elements());
  for (std::int64_t i = 0; i < source.elements(); ++i) {
    target.as<BFloat16>()[i] = rounded_stochastically(rounding, i, source.as<float>()[i]);
  }
}

}  // namespace fourfold::kernels::reference
