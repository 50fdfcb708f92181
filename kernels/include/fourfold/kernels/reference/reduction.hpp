// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Plain, serial, obviously right bodies of reduction.hpp, in double: same contracts, f32 only.
/// Tests compare the fast bodies with them; not for use in a run.
#pragma once

#include <fourfold/kernels/reduction.hpp>

namespace fourfold::kernels::reference {

void sum(ConstTensorView x, TensorView result, bool accumulate, device::StreamRef stream);

void sum_of_squares(ConstTensorView x, TensorView result, bool accumulate,
                    device::StreamRef stream);

}  // namespace fourfold::kernels::reference
