// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "vectors/storage.hpp"

#include <fourfold/kernels/activation.hpp>

#include <cmath>
#include <numbers>

namespace fourfold::kernels::reference {
namespace {

const double gelu_scale = std::sqrt(2.0 / std::numbers::pi);

double sigmoid(double x) {
  return 1.0 / (1.0 + std::exp(-x));
}

}  // namespace

void gelu(ConstTensorView x, TensorView y, device::StreamRef /*stream*/) {
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    const double v = read_element(x, i);
    write_element(y, i, 0.5 * v * (1.0 + std::tanh(gelu_scale * (v + 0.044715 * v * v * v))));
  }
}

void gelu_backward(ConstTensorView dy, ConstTensorView x, TensorView dx,
                   device::StreamRef /*stream*/) {
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    const double v = read_element(x, i);
    const double t = std::tanh(gelu_scale * (v + 0.044715 * v * v * v));
    const double inner = gelu_scale * (1.0 + 3.0 * 0.044715 * v * v);
    write_element(dx, i, read_element(dy, i) * (0.5 * (1.0 + t) + 0.5 * v * (1.0 - t * t) * inner));
  }
}

void swiglu(ConstTensorView gate_up_T2F, TensorView y_TF, device::StreamRef /*stream*/) {
  const std::int64_t features = y_TF.dim(1);
  for (std::int64_t t = 0; t < y_TF.dim(0); ++t) {
    for (std::int64_t f = 0; f < features; ++f) {
      const double gate = read_element(gate_up_T2F, 2 * t * features + f);
      const double up = read_element(gate_up_T2F, (2 * t + 1) * features + f);
      write_element(y_TF, t * features + f, gate * sigmoid(gate) * up);
    }
  }
}

void swiglu_backward(ConstTensorView dy_TF, ConstTensorView gate_up_T2F, TensorView dgate_up_T2F,
                     device::StreamRef /*stream*/) {
  const std::int64_t features = dy_TF.dim(1);
  for (std::int64_t t = 0; t < dy_TF.dim(0); ++t) {
    for (std::int64_t f = 0; f < features; ++f) {
      const std::int64_t at_gate = 2 * t * features + f;
      const std::int64_t at_up = at_gate + features;
      const double dy = read_element(dy_TF, t * features + f);
      const double gate = read_element(gate_up_T2F, at_gate);
      const double up = read_element(gate_up_T2F, at_up);
      const double s = sigmoid(gate);
      write_element(dgate_up_T2F, at_gate, dy * up * s * (1.0 + gate * (1.0 - s)));
      write_element(dgate_up_T2F, at_up, dy * gate * s);
    }
  }
}

void add(ConstTensorView a, ConstTensorView b, TensorView y, device::StreamRef /*stream*/) {
  for (std::int64_t i = 0; i < y.elements(); ++i) {
    write_element(y, i, read_element(a, i) + read_element(b, i));
  }
}

}  // namespace fourfold::kernels::reference
