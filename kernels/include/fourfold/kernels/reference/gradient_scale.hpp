// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Plain bodies of gradient_scale.hpp: same contracts, on the host. Tests compare the fast bodies
/// with them.
#pragma once

#include <fourfold/kernels/gradient_scale.hpp>

namespace fourfold::kernels::reference {

void clip_scale(ConstTensorView sum_of_squares, float max_norm, float loss_scale, TensorView norm,
                TensorView scale, device::StreamRef stream);

void void_scale(ConstTensorView norm, TensorView scale, device::StreamRef stream);

}  // namespace fourfold::kernels::reference
