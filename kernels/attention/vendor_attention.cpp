// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "attention_backend.hpp"

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
    return "there is no cuDNN (libcudnn.so.9 is nowhere that the loader looks); install it, or put "
           "its folder into LD_LIBRARY_PATH (PyTorch brings one: site-packages/nvidia/cudnn/lib)";
  }
  if (version / 10000 != 9 || version < oldest_cudnn) {
    return fmt::format("cuDNN {} is none that this program knows (9.7 or later of 9); take another",
                       text);
  }
  if (version == 91000 || version == 91001) {
    return fmt::format("cuDNN {} computes attention wrong (a known bug); take 9.10.2 or later",
                       text);
  }
  return {};
}

}  // namespace fourfold::kernels
