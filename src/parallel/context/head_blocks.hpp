// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Heads in dense memory, as messages carry them. Legend: B sequences, T tokens, F features of
/// some heads together.
#pragma once

#include <fourfold/base/contract.hpp>
#include <fourfold/base/tensor_view.hpp>
#include <fourfold/kernels/attention.hpp>
#include <fourfold/parallel/context_cut.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace fourfold::parallel {

/// x from its element `element` on.
template <class Pointer>
kernels::BasicHeads<Pointer> from_element(kernels::BasicHeads<Pointer> x, std::int64_t element) {
  using Byte = std::conditional_t<std::is_const_v<std::remove_pointer_t<Pointer>>, const std::byte,
                                  std::byte>;
  const std::int64_t bytes = element * size_in_bytes(x.dtype);
  x.data = static_cast<Byte*>(x.data) + bytes;
  return x;
}

/// x from token `token` of each sequence on.
template <class Pointer>
kernels::BasicHeads<Pointer> from_token(kernels::BasicHeads<Pointer> x, std::int64_t token) {
  return from_element(x, token * x.token_stride);
}

inline kernels::ConstHeads read_only(const kernels::Heads& x) {
  return {x.data, x.dtype, x.batch_stride, x.token_stride};
}

/// Memory that is used with several formats and sizes, one after the other. @pre it is large enough
inline TensorView as_elements(TensorView memory, DType dtype, std::int64_t elements) {
  const TensorView view(memory.data(), dtype, Shape{elements});
  FOURFOLD_EXPECT(view.bytes() <= memory.bytes());
  return view;
}

/// A dense [B, T, F] from element `first` of `memory` on.
inline kernels::Heads dense_heads(TensorView memory, std::int64_t first, std::int64_t tokens,
                                  std::int64_t features) {
  return from_element(kernels::Heads{memory.data(), memory.dtype(), tokens * features, features},
                      first);
}

/// Keys and values (or their gradients) in one piece: [2, B, T, F].
struct KeyValues {
  TensorView all;
  kernels::Heads k;
  kernels::Heads v;
};
inline KeyValues key_values(TensorView memory, DType dtype, std::int64_t batch, std::int64_t tokens,
                            std::int64_t features) {
  const std::int64_t each = batch * tokens * features;
  const TensorView all = as_elements(memory, dtype, 2 * each);
  return {all, dense_heads(all, 0, tokens, features), dense_heads(all, each, tokens, features)};
}

/// The shape of one product between chunks of shape.query_tokens / 2 tokens.
inline kernels::AttentionShape shape_of(const ChunkProduct& product,
                                        const kernels::AttentionShape& shape) {
  kernels::AttentionShape part = shape;
  part.query_tokens = shape.query_tokens / 2;
  part.key_tokens = product.key_chunks.count * part.query_tokens;
  part.causal = product.causal;
  part.query_offset = part.key_tokens - part.query_tokens;  // of the last keys; only when causal
  return part;
}

/// A chunk of the queries of position `rank`, and the keys in front of it and in it, of all ranks.
inline kernels::AttentionShape gathered_shape(const kernels::AttentionShape& shape, int cp,
                                              int rank, int chunk) {
  const Range tokens = context_chunks(cp * shape.key_tokens, cp, rank)[chunk];
  kernels::AttentionShape seen = shape;
  seen.query_tokens = tokens.count;
  seen.key_tokens = tokens.end();
  seen.query_offset = tokens.begin;
  return seen;
}

/// All tokens, with the heads dealt to one rank.
inline kernels::AttentionShape dealt_shape(const kernels::AttentionShape& shape, int cp) {
  kernels::AttentionShape all = shape;
  all.query_tokens = all.key_tokens = cp * shape.query_tokens;
  all.heads = shape.heads / cp;
  all.kv_heads = std::max<std::int64_t>(1, shape.kv_heads / cp);
  return all;
}

/// Calls move(chunk, first) for both chunks of `tokens` that `rank` holds: `chunk` among all
/// tokens, in causal order, is at token `first` of those that the rank holds.
template <class Move>
void for_each_held_chunk(std::int64_t tokens, int ranks, int rank, const Move& move) {
  std::int64_t first = 0;
  for (const Range& chunk : context_chunks(tokens, ranks, rank)) {
    move(chunk, first);
    first += chunk.count;
  }
}

/// Where the numbers per query (log-sum-exp, delta) of a chunk are: chunk after chunk, each as the
/// kernel lays it out.
inline std::int64_t chunk_rows(const kernels::AttentionShape& shape, int chunk) {
  return chunk * shape.batch * shape.heads * (shape.query_tokens / 2);
}

}  // namespace fourfold::parallel
