// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Point-wise pieces of a block. f32, bf16 or f16 storage, computed in f32. Legend: T rows, F
/// features, D features. Stream-ordered; bit-identical from run to run, for any number of threads.
#pragma once

#include <fourfold/base/tensor_view.hpp>
#include <fourfold/device/stream.hpp>

namespace fourfold::kernels {

/// y = 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))): the "gelu_new" of GPT-2.
void gelu(ConstTensorView x, TensorView y, device::StreamRef stream);
/// dx = dy * gelu'(x). dx may be dy.
void gelu_backward(ConstTensorView dy, ConstTensorView x, TensorView dx, device::StreamRef stream);

/// y_TF = silu(gate_TF) * up_TF where each row of gate_up_T2F is gate, then up (Shazeer 2020).
void swiglu(ConstTensorView gate_up_T2F, TensorView y_TF, device::StreamRef stream);
/// dgate_up = gradient; may be gate_up itself.
void swiglu_backward(ConstTensorView dy_TF, ConstTensorView gate_up_T2F, TensorView dgate_up_T2F,
                     device::StreamRef stream);

/// y = a + b. y may be a or b.
void add(ConstTensorView a, ConstTensorView b, TensorView y, device::StreamRef stream);

}  // namespace fourfold::kernels

// Plain, serial, obviously right bodies of activation.hpp, in double: same contracts. Tests
// compare the fast bodies with them; not for use in a run.
namespace fourfold::kernels::reference {

void gelu(ConstTensorView x, TensorView y, device::StreamRef stream);

void gelu_backward(ConstTensorView dy, ConstTensorView x, TensorView dx, device::StreamRef stream);

void swiglu(ConstTensorView gate_up_T2F, TensorView y_TF, device::StreamRef stream);

void swiglu_backward(ConstTensorView dy_TF, ConstTensorView gate_up_T2F, TensorView dgate_up_T2F,
                     device::StreamRef stream);

void add(ConstTensorView a, ConstTensorView b, TensorView y, device::StreamRef stream);

}  // namespace fourfold::kernels::reference
