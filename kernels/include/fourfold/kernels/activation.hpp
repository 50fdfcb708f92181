// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Point-wise pieces of a block. f32, bf16 or f16 storage, computed in f32. Legend: T rows, F
/// features, D features. Stream-ordered; bit-identical from run to run, for any number of threads.
#pragma once

#include <fourfold/base/enum_name.hpp>
#include <fourfold/base/tensor_view.hpp>
#include <fourfold/device/stream.hpp>

#include <cstdint>

namespace fourfold::kernels {

/// gelu_tanh: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), the "gelu_new" of Hugging Face.
/// silu: x / (1 + e^-x).
enum class Activation : std::uint8_t { gelu_tanh, silu };
constexpr auto names_of(Activation /*any*/) {
  return std::to_array<Named<Activation>>(
      {{Activation::gelu_tanh, "gelu_tanh"}, {Activation::silu, "silu"}});
}
using fourfold::name;  // of what has names_of()

/// y = activation(x).
void activate(Activation activation, ConstTensorView x, TensorView y, device::StreamRef stream);
/// dx = dy * activation'(x). dx may be dy.
void activate_backward(Activation activation, ConstTensorView dy, ConstTensorView x, TensorView dx,
                       device::StreamRef stream);

/// y_TF = activation(gate_TF) * up_TF where each row of gate_up_T2F is gate, then up: SwiGLU with
/// silu, GeGLU with gelu_tanh (Shazeer 2020).
void activate_gated(Activation activation, ConstTensorView gate_up_T2F, TensorView y_TF,
                    device::StreamRef stream);
/// dgate_up = gradient; may be gate_up itself.
void activate_gated_backward(Activation activation, ConstTensorView dy_TF,
                             ConstTensorView gate_up_T2F, TensorView dgate_up_T2F,
                             device::StreamRef stream);

/// y = a + b. y may be a or b.
void add(ConstTensorView a, ConstTensorView b, TensorView y, device::StreamRef stream);

}  // namespace fourfold::kernels

// Plain, serial, obviously right bodies of activation.hpp, in double: same contracts. Tests
// compare the fast bodies with them; not for use in a run.
namespace fourfold::kernels::reference {

void activate(Activation activation, ConstTensorView x, TensorView y, device::StreamRef stream);

void activate_backward(Activation activation, ConstTensorView dy, ConstTensorView x, TensorView dx,
                       device::StreamRef stream);

void activate_gated(Activation activation, ConstTensorView gate_up_T2F, TensorView y_TF,
                    device::StreamRef stream);

void activate_gated_backward(Activation activation, ConstTensorView dy_TF,
                             ConstTensorView gate_up_T2F, TensorView dgate_up_T2F,
                             device::StreamRef stream);

void add(ConstTensorView a, ConstTensorView b, TensorView y, device::StreamRef stream);

}  // namespace fourfold::kernels::reference
