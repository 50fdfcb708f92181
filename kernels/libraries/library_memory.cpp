// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "attention/attention_backend.hpp"

#include <fourfold/kernels/library_memory.hpp>

#include <algorithm>

namespace fourfold::kernels {
namespace {

std::int64_t rounded_up(std::int64_t tokens, std::int64_t multiple) {
  return (tokens + multiple - 1) / multiple * multiple;
}

}  // namespace

std::int64_t attention_workspace_bytes(const AttentionShape& shape, int compute_capability) {
  const std::int64_t rows = shape.batch * shape.heads * shape.query_tokens;
  const std::int64_t sums = rows * 4 + 256;
  const std::int64_t shared_heads =
      shape.heads == shape.kv_heads
          ? 0
          : 2 * shape.batch * shape.heads * shape.key_tokens * shape.head_dim * 2;
  if (!shape.deterministic) {
    const std::int64_t copies = compute_capability < 90 ? 2 : 1;
    return sums + shared_heads + copies * rows * shape.head_dim * 4;
  }
  if (compute_capability >= 100) {
    return sums + 2 * shared_heads;
  }
  return sums + shared_heads +
         shape.batch * shape.heads * rounded_up(shape.query_tokens, 64) *
             rounded_up(shape.key_tokens, compute_capability < 90 ? 64 : 128) * 2;
}

std::int64_t staged_bytes(std::int64_t elements) {
  return rounded_up(2 * elements, 256);
}

std::int64_t attention_staging_bytes(const AttentionUse& use, bool is_backward) {
  const AttentionShape& shape = use.shape;
  const std::int64_t rows = shape.batch * shape.heads * shape.query_tokens;
  const std::int64_t keys = shape.batch * shape.kv_heads * shape.key_tokens;
  const std::int64_t lse = is_backward ? 0 : rows * 4;
  return (use.sums_queries ? staged_bytes(rows * shape.head_dim) + lse : 0) +
         (use.sums_keys && is_backward ? 2 * staged_bytes(keys * shape.head_dim) : 0);
}

std::int64_t library_memory_bytes(std::span<const AttentionUse> uses, DType dtype,
                                  int compute_capability) {
  std::int64_t workspace = product_workspace_bytes;
  std::int64_t staging = 0;
  for (const AttentionUse& use : uses) {
    const AttentionShape& shape = use.shape;
    const auto rows = [&](std::int64_t tokens, std::int64_t heads) {
      const std::int64_t row = heads * shape.head_dim;
      return ConstHeads{nullptr, dtype, tokens * row, row};
    };
    const ConstHeads q = rows(shape.query_tokens, shape.heads);
    const ConstHeads k = rows(shape.key_tokens, shape.kv_heads);
    for (const bool is_backward : {false, true}) {
      if (!vendor_serves({shape, is_backward, q, k, k, q, nullptr, q, q, k, k},
                         compute_capability)) {
        continue;
      }
      staging = std::max(staging, attention_staging_bytes(use, is_backward));
      if (is_backward) {
        workspace = std::max(workspace, attention_workspace_bytes(shape, compute_capability));
      }
    }
  }
  return workspace + staging;
}

}  // namespace fourfold::kernels
