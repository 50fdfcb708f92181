// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Plain, serial, obviously right bodies of matmul.hpp: same contracts, sums in f64. Tests compare
/// the fast bodies with these; not for use in a run.
#pragma once

#include <fourfold/kernels/matmul.hpp>

namespace fourfold::kernels::reference {

void linear(ConstTensorView x_TI, ConstTensorView w_OI, ConstTensorView bias_O, TensorView y_TO,
            device::StreamRef stream);
void linear_gelu(ConstTensorView x_TI, ConstTensorView w_OI, ConstTensorView bias_O,
                 TensorView pre_TO, TensorView y_TO, device::StreamRef stream);
void linear_backward_input(ConstTensorView dy_TO, ConstTensorView w_OI, TensorView dx_TI,
                           Write write, device::StreamRef stream);
void linear_backward_input_gelu(ConstTensorView dy_TO, ConstTensorView w_OI, ConstTensorView pre_TI,
                                TensorView dpre_TI, device::StreamRef stream);
void linear_backward_weight(ConstTensorView x_TI, ConstTensorView dy_TO, TensorView dw_OI,
                            TensorView dbias_O, device::StreamRef stream);
void linear_tile(ConstTensorView x_TI, ConstTensorView w_OI, ConstTensorView bias_O,
                 TensorView y_TY, std::int64_t first, device::StreamRef stream);
void linear_tile_backward_input(ConstTensorView dy_TY, std::int64_t first, ConstTensorView w_OI,
                                TensorView dx_TI, Write write, device::StreamRef stream);
void linear_tile_backward_weight(ConstTensorView x_TI, ConstTensorView dy_TY, std::int64_t first,
                                 TensorView dw_OI, TensorView dbias_O, device::StreamRef stream);

}  // namespace fourfold::kernels::reference
