// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Plain, serial, obviously right bodies of dropout.hpp, in double: same contracts. Tests compare
/// the fast bodies with them; not for use in a run.
#pragma once

#include <fourfold/kernels/dropout.hpp>

namespace fourfold::kernels::reference {

void dropout_add(const DropoutSite& site, ConstTensorView x_TD, ConstTensorView residual_TD,
                 ConstTensorView sample_T, ConstTensorView position_T, TensorView y_TD,
                 device::StreamRef stream);

void dropout_backward(const DropoutSite& site, ConstTensorView dy_TD, ConstTensorView sample_T,
                      ConstTensorView position_T, TensorView dx_TD, device::StreamRef stream);

}  // namespace fourfold::kernels::reference
