// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Plain, serial bodies of low_rank.hpp, in double: same contracts. Tests compare the fast bodies
/// with them; not for use in a run.
#pragma once

#include <fourfold/kernels/low_rank.hpp>

namespace fourfold::kernels::reference {

void orthonormalise_rows(TensorView x_RN, device::StreamRef stream);

void low_rank_product(ConstTensorView a_RN, ConstTensorView b_RM, TensorView y_NM,
                      device::StreamRef stream);

void low_rank_remainder(ConstTensorView a_RN, ConstTensorView b_RM, float factor, TensorView y_NM,
                        device::StreamRef stream);

void replace_zero_rows(ConstTensorView other_RM, TensorView x_RM, device::StreamRef stream);

}  // namespace fourfold::kernels::reference
