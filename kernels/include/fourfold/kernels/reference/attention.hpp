// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Plain, serial, obviously right bodies of attention.hpp: same contracts, f64 throughout, one row
/// of scores at a time. Tests compare the fast bodies with these; not for use in a run.
#pragma once

#include <fourfold/kernels/attention.hpp>

namespace fourfold::kernels::reference {

void attention(const AttentionShape& shape, ConstHeads q, ConstHeads k, ConstHeads v, Heads out,
               float* lse_BNT, device::StreamRef stream);
void attention_backward(const AttentionShape& shape, ConstHeads q, ConstHeads k, ConstHeads v,
                        ConstHeads out, ConstHeads dout, const float* lse_BNT, float* delta_BNT,
                        Heads dq, Heads dk, Heads dv, device::StreamRef stream);
void attention_merge(const AttentionShape& shape, ConstHeads q, ConstHeads k, ConstHeads v,
                     Heads out, float* lse_BNT, device::StreamRef stream);
void attention_delta(const AttentionShape& shape, ConstHeads out, ConstHeads dout, float* delta_BNT,
                     device::StreamRef stream);
void attention_backward_part(const AttentionShape& shape, ConstHeads q, ConstHeads k, ConstHeads v,
                             ConstHeads out, ConstHeads dout, const float* lse_BNT,
                             const float* delta_BNT, Heads dq, Write write_dq, Heads dk, Heads dv,
                             Write write_dkv, device::StreamRef stream);

}  // namespace fourfold::kernels::reference
