// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/tensor_view.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/kernels/attention.hpp>

#include <cstdint>

namespace fourfold::kernels {

/// Rotary position embedding (Su et al. 2021), half-split as Hugging Face has it: features
/// h and h + H/2 of a head turn together by position * frequency[h]. In place, f32, bf16 or f16
/// storage, f32 arithmetic.
/// @param x           heads to turn: B sequences of T tokens, N heads of H features (H even)
/// @param cos_sin_PH  f32 [positions, H]: per position H/2 cosines, then H/2 sines (already scaled,
/// see rotary_table)
/// @param position_T  i32, T positions, the same for each sequence
/// @param inverse     turns back: the backward pass
void rotary(Heads x, std::int64_t batch, std::int64_t tokens, std::int64_t heads,
            std::int64_t head_dim, ConstTensorView cos_sin_PH, ConstTensorView position_T,
            bool inverse, device::StreamRef stream);

}  // namespace fourfold::kernels

// Plain, serial, obviously right body of rotary.hpp: same contract. Tests compare the fast body
// with it; not for use in a run.
namespace fourfold::kernels::reference {

void rotary(Heads x, std::int64_t batch, std::int64_t tokens, std::int64_t heads,
            std::int64_t head_dim, ConstTensorView cos_sin_PH, ConstTensorView position_T,
            bool inverse, device::StreamRef stream);

}  // namespace fourfold::kernels::reference
