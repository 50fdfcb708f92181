// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Plain, serial, obviously right body of rotary.hpp: same contract. Tests compare the fast body
/// with it; not for use in a run.
#pragma once

#include <fourfold/kernels/rotary.hpp>

namespace fourfold::kernels::reference {

void rotary(Heads x, std::int64_t batch, std::int64_t tokens, std::int64_t heads,
            std::int64_t head_dim, ConstTensorView cos_sin_PH, ConstTensorView position_T,
            bool inverse, device::StreamRef stream);

}  // namespace fourfold::kernels::reference
