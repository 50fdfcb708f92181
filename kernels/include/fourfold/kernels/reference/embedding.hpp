// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Plain, serial, obviously right bodies of embedding.hpp, in double: same contracts. Tests compare
/// the fast bodies with them; not for use in a run.
#pragma once

#include <fourfold/kernels/embedding.hpp>

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
