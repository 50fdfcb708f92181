// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "vendor_attention.hpp"

#include <fourfold/kernels/library_memory.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace fourfold::kernels {
namespace {

constexpr std::int64_t border_bytes = 16;
constexpr std::int64_t border_elements = border_bytes / 2;

/// The first of CUDA 12.8.
constexpr std::size_t oldest_cudnn = 90700;

bool is_on_border(const AttentionShape& shape, const ConstHeads& x) {
  return reinterpret_cast<std::uintptr_t>(x.data) % border_bytes == 0 &&
         x.token_stride % border_elements == 0 &&
         (shape.batch == 1 || x.batch_stride % border_elements == 0);
}

std::int64_t most_features(bool is_backward, int compute_capability) {
  return is_backward && compute_capability / 10 != 9 ? 128 : 256;
}

std::int64_t rounded_up(std::int64_t tokens, std::int64_t multiple) {
  return (tokens + multiple - 1) / multiple * multiple;
}

}  // namespace

std::vector<ConstHeads> AttentionCall::operands() const {
  if (is_backward) {
    return {q, k, v, out, dout, dq, dk, dv};
  }
  return {q, k, v, out};
}

AttentionMask mask_of(const AttentionShape& shape) {
  if (!shape.causal || shape.query_offset >= shape.key_tokens - 1) {
    return AttentionMask::none;
  }
  if (shape.query_offset != shape.key_tokens - shape.query_tokens) {
    return AttentionMask::other;
  }
  return shape.query_offset == 0  ? AttentionMask::top_left
         : shape.query_offset > 0 ? AttentionMask::bottom_right
                                  : AttentionMask::other;
}

bool vendor_serves(const AttentionCall& call, int compute_capability) {
  const AttentionShape& shape = call.shape;
  const DType dtype = call.q.dtype;
  return compute_capability >= 80 && shape.batch > 0 && shape.heads > 0 && shape.kv_heads > 0 &&
         shape.heads % shape.kv_heads == 0 && shape.query_tokens > 1 && shape.key_tokens > 0 &&
         shape.head_dim > 0 && shape.head_dim % border_elements == 0 &&
         shape.head_dim <= most_features(call.is_backward, compute_capability) &&
         (dtype == DType::bf16 || dtype == DType::f16) && mask_of(shape) != AttentionMask::other &&
         std::ranges::all_of(call.operands(), [&](const ConstHeads& x) {
           return x.dtype == dtype && is_on_border(shape, x);
         });
}

std::string cudnn_defect(std::size_t version) {
  const std::string text =
      fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
  if (version == 0) {
    return "there is no cuDNN (libcudnn.so.9 is nowhere that the loader looks) install it, or put "
           "its folder into LD_LIBRARY_PATH (PyTorch brings one: site-packages/nvidia/cudnn/lib)";
  }
  if (version / 10000 != 9 || version < oldest_cudnn) {
    return fmt::format("cuDNN {} is none that this program knows (9.7 or later of 9) take another",
                       text);
  }
  if (version == 91000 || version == 91001) {
    return fmt::format("cuDNN {} computes attention wrong (a known bug) take 9.10.2 or later",
                       text);
  }
  return {};
}

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
