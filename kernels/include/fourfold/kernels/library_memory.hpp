// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What cuBLASLt and cuDNN take of a device's memory beside the operands of their calls. Pure
/// functions: known before the first call, and where there is no device.
#pragma once

#include <fourfold/base/dtype.hpp>
#include <fourfold/kernels/attention.hpp>

#include <cstdint>
#include <span>

namespace fourfold::kernels {

/// Of cuBLASLt: what it is offered, and no kernel of it may exceed.
inline constexpr std::int64_t product_workspace_bytes = std::int64_t{32} << 20;

/// Calls of attention over one shape, forward and backward, in 16 bits.
struct AttentionUse {
  AttentionShape shape;
  bool sums_queries = false;  ///< attention_merge(), and gradients of queries that are added to
  bool sums_keys = false;     ///< gradients of keys and values that are added to
};

/// Results that are added up in f32, which cuDNN makes in 16 bits: q = 2 B Tq N H, k = 2 B Tk K H.
/// Forward q + 4 B N Tq, backward q + 2 k, in bytes.
std::int64_t attention_staging_bytes(const AttentionUse& use, bool is_backward);

/// Of a stream on which these calls and products run:
///     max(product_workspace_bytes, attention_workspace_bytes()) + attention_staging_bytes(),
/// each of the call that takes most: calls share this memory. Those that cuDNN does not serve take
/// nothing. Not counted are the libraries' code and handles, and smaller scratch memory of other
/// kernels, which shares this.
std::int64_t library_memory_bytes(std::span<const AttentionUse> uses, DType dtype,
                                  int compute_capability);

}  // namespace fourfold::kernels
