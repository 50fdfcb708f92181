// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Plain, serial, obviously right bodies of activation.hpp, in double: same contracts. Tests
/// compare the fast bodies with them; not for use in a run.
#pragma once

#include <fourfold/kernels/activation.hpp>

namespace fourfold::kernels::reference {

void gelu(ConstTensorView x, TensorView y, device::StreamRef stream);

void gelu_backward(ConstTensorView dy, ConstTensorView x, TensorView dx, device::StreamRef stream);

void swiglu(ConstTensorView gate_up_T2F, TensorView y_TF, device::StreamRef stream);

void swiglu_backward(ConstTensorView dy_TF, ConstTensorView gate_up_T2F, TensorView dgate_up_T2F,
                     device::StreamRef stream);

void add(ConstTensorView a, ConstTensorView b, TensorView y, device::StreamRef stream);

}  // namespace fourfold::kernels::reference
