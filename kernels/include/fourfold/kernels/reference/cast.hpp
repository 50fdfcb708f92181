// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Plain, serial, obviously right bodies of cast.hpp, in double: same contracts. Tests compare the
/// fast bodies with them; not for use in a run.
#pragma once

#include <fourfold/kernels/cast.hpp>

namespace fourfold::kernels::reference {

void cast(ConstTensorView source, TensorView target, device::StreamRef stream);

void add_scaled(ConstTensorView x, float factor, ConstTensorView y, TensorView out,
                device::StreamRef stream);

}  // namespace fourfold::kernels::reference
