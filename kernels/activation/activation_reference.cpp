// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "vectors/storage.hpp"

#include <fourfold/kernels/activation.hpp>

#include <cmath>
#include <numbers>

namespace fourfold::kernels::reference {
namespace {

const double gelu_scale = std::sqrt(2.0 / std::numbers::pi);

double value(Activation activation, double x) {
  return activation == Activation::silu
             ? x / (1.0 + std::exp(-x))
             : 0.5 * x * (1.0 + std::tanh(gelu_scale * (x + 0.044715 * x * x * x)));
}

double derivative(Activation activation, double x) {
  if (activation == Activation::silu) {
    const double s = 1.0 / (1.0 + std::exp(-x));
    return s * (1.0 + x * (1.0 - s));
  }
  const double t = std::tanh(gelu_scale * (x + 0.044715 * x * x * x));
  const double inner = gelu_scale * (1.0 + 3.0 * 0.044715 * x * x);
  return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * inner;
}

}  // namespace

void activate(Activation activation, ConstTensorView x, TensorView y,
              device::StreamRef /*stream*/) {
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    write_element(y, i, value(activation, read_element(x, i)));
  }
}

void activate_backward(Activation activation, ConstTensorView dy, ConstTensorView x, TensorView dx,
                       device::StreamRef /*stream*/) {
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    write_element(dx, i, read_element(dy, i) * derivative(activation, read_element(x, i)));
  }
}

void activate_gated(Activation activation, ConstTensorView gate_up_T2F, TensorView y_TF,
                    device::StreamRef /*stream*/) {
  const std::int64_t features = y_TF.dim(1);
  for (std::int64_t t = 0; t < y_TF.dim(0); ++t) {
    for (std::int64_t f = 0; f < features; ++f) {
      const double gate = read_element(gate_up_T2F, 2 * t * features + f);
      const double up = read_element(gate_up_T2F, (2 * t + 1) * features + f);
      write_element(y_TF, t * features + f, value(activation, gate) * up);
    }
  }
}

void activate_gated_backward(Activation activation, ConstTensorView dy_TF,
                             ConstTensorView gate_up_T2F, TensorView dgate_up_T2F,
                             device::StreamRef /*stream*/) {
  const std::int64_t features = dy_TF.dim(1);
  for (std::int64_t t = 0; t < dy_TF.dim(0); ++t) {
    for (std::int64_t f = 0; f < features; ++f) {
      const std::int64_t at_gate = 2 * t * features + f;
      const std::int64_t at_up = at_gate + features;
      const double dy = read_element(dy_TF, t * features + f);
      const double gate = read_element(gate_up_T2F, at_gate);
      const double up = read_element(gate_up_T2F, at_up);
      write_element(dgate_up_T2F, at_gate, dy * up * derivative(activation, gate));
      write_element(dgate_up_T2F, at_up, dy * value(activation, gate));
    }
  }
}

void add(ConstTensorView a, ConstTensorView b, TensorView y, device::StreamRef /*stream*/) {
  for (std::int64_t i = 0; i < y.elements(); ++i) {
    write_element(y, i, read_element(a, i) + read_element(b, i));
  }
}

}  // namespace fourfold::kernels::reference
