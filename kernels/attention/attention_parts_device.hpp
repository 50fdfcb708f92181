// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Attention by the vendor's library for callers that add up over parts of the keys. The library
/// makes results of 16 bits only: those that are wanted in f32 it leaves in scratch memory, each
/// rounded once, and they are added up in f32. Both say false, with nothing enqueued, when the
/// library does not serve the call.
#pragma once

#include "attention_backend.hpp"

namespace fourfold::kernels {

/// attention(), or attention_merge() if each query sees one of these keys, as they do in the masks
/// that the library has.
bool vendor_attends(const AttentionShape& shape, ConstHeads q, ConstHeads k, ConstHeads v,
                    Heads out, float* lse_BNT, bool merges, device::StreamRef stream);

/// attention_backward_part(), with delta made from `out` and `dout`.
bool vendor_differentiates(const AttentionGradients& with, device::StreamRef stream);

// Attention on a device without the vendor's library: what that does not serve, and what an
// emulated device has in its place.

/// attention(), or attention_merge(). There is a query.
void portable_attention(const AttentionShape& shape, ConstHeads q, ConstHeads k, ConstHeads v,
                        Heads out, float* lse_BNT, bool merges, device::StreamRef stream);

/// attention_backward_part().
void portable_attention_backward(const AttentionGradients& with, device::StreamRef stream);

}  // namespace fourfold::kernels
