// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Matrix products of linear layers, through the vendor's library (oneDNN on the CPU, cuBLASLt on
/// NVIDIA). Legend: T tokens (all leading dims flattened), I input features, O output features, Y
/// output features of all tiles. Row-major, dense.
///
/// Activations and weights are f32, bf16 or f16 (all of one call alike); every product accumulates
/// in f32. Stream-ordered; nothing allocates after the first call of a shape; the same call gives
/// the same bits every time for a given number of threads.
#pragma once

#include <fourfold/base/tensor_view.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/kernels/operands.hpp>

namespace fourfold::kernels {

/// y = x w^T + bias.
/// @param bias_O  same dtype as w, or absent
void linear(ConstTensorView x_TI, ConstTensorView w_OI, ConstTensorView bias_O, TensorView y_TO,
            device::StreamRef stream);

/// pre = x w^T + bias; y = gelu(pre), as activation.hpp has it: linear() and activate(gelu_tanh) to
/// the bit, but on devices whose library makes both at once, of 16-bit numbers, from the sums as
/// they are before pre is rounded. Which of the two a device does depends on dtypes, sizes and
/// alignments only.
/// @param bias_O  same dtype as w, or absent
void linear_gelu(ConstTensorView x_TI, ConstTensorView w_OI, ConstTensorView bias_O,
                 TensorView pre_TO, TensorView y_TO, device::StreamRef stream);

/// dx = dy w, or dx += dy w. @param dx_TI  of the dtype of dy, or f32
void linear_backward_input(ConstTensorView dy_TO, ConstTensorView w_OI, TensorView dx_TI,
                           Write write, device::StreamRef stream);

/// dpre = (dy w) * gelu'(pre): linear_backward_input() of y = gelu(pre) w^T and gelu_backward();
/// likewise to the bit, but for where a device does both at once.
void linear_backward_input_gelu(ConstTensorView dy_TO, ConstTensorView w_OI, ConstTensorView pre_TI,
                                TensorView dpre_TI, device::StreamRef stream);

/// dw += dy^T x, in f32 whatever the dtype of x and dy; dbias += column sums of dy.
/// @param dw_OI    f32
/// @param dbias_O  f32, or absent
void linear_backward_weight(ConstTensorView x_TI, ConstTensorView dy_TO, TensorView dw_OI,
                            TensorView dbias_O, device::StreamRef stream);

/// The same for O of the Y features of an output, the columns [first, first + O) of y or dy, as a
/// product in tiles takes them. Other columns are neither read nor written; bias and dbias are
/// those of the tile.
void linear_tile(ConstTensorView x_TI, ConstTensorView w_OI, ConstTensorView bias_O,
                 TensorView y_TY, std::int64_t first, device::StreamRef stream);
void linear_tile_backward_input(ConstTensorView dy_TY, std::int64_t first, ConstTensorView w_OI,
                                TensorView dx_TI, Write write, device::StreamRef stream);
void linear_tile_backward_weight(ConstTensorView x_TI, ConstTensorView dy_TY, std::int64_t first,
                                 TensorView dw_OI, TensorView dbias_O, device::StreamRef stream);

}  // namespace fourfold::kernels

// Plain, serial, obviously right bodies of matmul.hpp: same contracts, sums in f64. Tests compare
// the fast bodies with these; not for use in a run.
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
