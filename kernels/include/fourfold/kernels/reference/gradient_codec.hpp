// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Plain, serial bodies of gradient_codec.hpp: same contracts. Tests compare the fast bodies with
/// them; not for use in a run.
#pragma once

#include <fourfold/kernels/gradient_codec.hpp>

namespace fourfold::kernels::reference {

void encode(GradientCodec codec, ConstTensorView gradient, ConstTensorView error, float error_scale,
            TensorView new_error, TensorView payload, device::StreamRef stream);

void decode(GradientCodec codec, ConstTensorView payload, TensorView gradient, Write write,
            device::StreamRef stream);

}  // namespace fourfold::kernels::reference
