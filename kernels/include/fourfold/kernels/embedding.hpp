// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/tensor_view.hpp>
#include <fourfold/device/stream.hpp>

#include <cstdint>

namespace fourfold::kernels {

/// y_t = weight[token_t - first_row] (+ position_weight[position_t]). Tokens outside the rows at
/// hand give zeros for their token part (vocabulary parallelism). Legend: T tokens, V rows at hand,
/// P positions, D features.
/// @param token_T            i32
/// @param position_weight_PD absent for models without learned positions
/// @param position_T         i32; used with position_weight only
void embedding(ConstTensorView token_T, ConstTensorView weight_VD, std::int64_t first_row,
               ConstTensorView position_weight_PD, ConstTensorView position_T, TensorView y_TD,
               device::StreamRef stream);

/// y_t += weight[token_t - first_row], for the tokens whose rows are at hand: the tiles of a table
/// one after the other, in rows that began as zeros, give the bits of embedding() with the whole.
void embedding_add(ConstTensorView token_T, ConstTensorView weight_VD, std::int64_t first_row,
                   TensorView y_TD, device::StreamRef stream);

/// dweight[token_t - first_row] += dy_t; dposition_weight[position_t] += dy_t. Both f32.
/// Deterministic: each row is summed in the order of t, for any number of threads.
/// @param dposition_weight_PD absent for models without learned positions
void embedding_backward(ConstTensorView token_T, ConstTensorView dy_TD, std::int64_t first_row,
                        TensorView dweight_VD, ConstTensorView position_T,
                        TensorView dposition_weight_PD, device::StreamRef stream);

}  // namespace fourfold::kernels

// Plain, serial, obviously right bodies of embedding.hpp, in double: same contracts. Tests compare
// the fast bodies with them; not for use in a run.
namespace fourfold::kernels::reference {

void embedding(ConstTensorView token_T, ConstTensorView weight_VD, std::int64_t first_row,
               ConstTensorView position_weight_PD, ConstTensorView position_T, TensorView y_TD,
               device::StreamRef stream);

void embedding_add(ConstTensorView token_T, ConstTensorView weight_VD, std::int64_t first_row,
                   TensorView y_TD, device::StreamRef stream);
void embedding_backward(ConstTensorView token_T, ConstTensorView dy_TD, std::int64_t first_row,
                        TensorView dweight_VD, ConstTensorView position_T,
                        TensorView dposition_weight_PD, device::StreamRef stream);

}  // namespace fourfold::kernels::reference
