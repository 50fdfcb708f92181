// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What attention.cpp asks of the kernels for hosts or for devices (*_host, *_device). Operands are
/// those of attention.hpp, and as that asks for them.
#pragma once

#include <fourfold/kernels/attention.hpp>

namespace fourfold::kernels {

/// The most features of a head that the kernels for devices take.
inline constexpr std::int64_t most_device_head_dim = 256;

/// attention(), or attention_merge(). There is a query.
void attend(const AttentionShape& shape, ConstHeads q, ConstHeads k, ConstHeads v, Heads out,
            float* lse_BNT, bool merges, device::StreamRef stream);

/// attention_delta()
void sum_attention_delta(const AttentionShape& shape, ConstHeads out, ConstHeads dout,
                         float* delta_BNT, device::StreamRef stream);

struct AttentionGradients {
  AttentionShape shape;
  ConstHeads q;
  ConstHeads k;
  ConstHeads v;
  ConstHeads out;  ///< without data where it is not at hand
  ConstHeads dout;
  const float* lse_BNT;
  const float* delta_BNT;
  Heads dq;
  Write write_dq;
  Heads dk;
  Heads dv;
  Write write_dkv;
};

/// attention_backward_part()
void differentiate_attention_part(const AttentionGradients& with, device::StreamRef stream);

/// attention_backward()
/// @param delta_BNT  that of `with`, which is yet to be made where the kernel wants it
void differentiate_attention(const AttentionGradients& with, float* delta_BNT,
                             device::StreamRef stream);

}  // namespace fourfold::kernels
