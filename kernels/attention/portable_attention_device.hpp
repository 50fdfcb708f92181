// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Attention on a device without the vendor's library: what that does not serve, and what an
/// emulated device has in its place.
#pragma once

#include "attention_backend.hpp"

namespace fourfold::kernels {

/// attention(), or attention_merge(). There is a query.
void portable_attention(const AttentionShape& shape, ConstHeads q, ConstHeads k, ConstHeads v,
                        Heads out, float* lse_BNT, bool merges, device::StreamRef stream);

/// attention_backward_part().
void portable_attention_backward(const AttentionGradients& with, device::StreamRef stream);

}  // namespace fourfold::kernels
