// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What the forward and the backward pass of attention on the CPU share: blocks of one head in f32,
/// and which keys a query sees.
#pragma once

#include "runtime/scratch.hpp"
#include "vectors/register_tile_host.hpp"

#include <fourfold/kernels/attention.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace fourfold::kernels {

/// Keys (and in the backward pass queries) of one block: a multiple of tile_rows and of 2 *
/// register_lanes on every CPU, small enough for all blocks of a pass to stay in the second-level
/// cache.
inline constexpr std::int64_t attention_block = 96;
static_assert(attention_block % tile_rows == 0 && attention_block % (2 * register_lanes) == 0);

inline constexpr std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// A head's features padded to whole registers.
inline std::int64_t padded_head_dim(const AttentionShape& shape) {
  return round_up(shape.head_dim, register_lanes);
}

/// How many of the `keys` keys from `first_key` on query `query` sees: the first ones.
inline std::int64_t visible_keys(const AttentionShape& shape, std::int64_t query,
                                 std::int64_t first_key, std::int64_t keys) {
  if (!shape.causal) {
    return keys;
  }
  return std::clamp<std::int64_t>(query + shape.query_offset + 1 - first_key, 0, keys);
}

/// The first query that sees `key`.
inline std::int64_t first_query(const AttentionShape& shape, std::int64_t key) {
  return shape.causal ? std::max<std::int64_t>(0, key - shape.query_offset) : 0;
}

/// One head of one sequence: that heads begin there.
template <class Pointer>
BasicHeads<Pointer> head(const AttentionShape& shape, const BasicHeads<Pointer>& x, std::int64_t b,
                         std::int64_t n) {
  using Byte = std::conditional_t<std::is_same_v<Pointer, const void*>, const std::byte, std::byte>;
  const std::int64_t first = b * x.batch_stride + n * shape.head_dim;
  return {x.template as<Byte>() + first * size_in_bytes(x.dtype), x.dtype, 0, x.token_stride};
}

// x: one head, with so many features.

/// target[t][h] = factor * x[first + t][h], rows `stride` apart; rows from `tokens` to
/// `padded_tokens` and features from head_dim to `stride` become zero.
void load_rows(const ConstHeads& x, std::int64_t head_dim, std::int64_t first, std::int64_t tokens,
               std::int64_t padded_tokens, float factor, float* target, std::int64_t stride);

/// target[h][t] = x[first + t][h], rows attention_block apart; columns from `tokens` on become
/// zero.
void load_transposed(const ConstHeads& x, std::int64_t head_dim, std::int64_t first,
                     std::int64_t tokens, float* target);

/// x[first + t][h] = factor * source[t][h], rounded to the storage format.
void store_rows(const float* source, std::int64_t stride, float factor, const Heads& x,
                std::int64_t head_dim, std::int64_t first, std::int64_t tokens);

/// x[first + t][h] += factor * source[t][h]. @pre x is f32
void add_rows(const float* source, std::int64_t stride, float factor, const Heads& x,
              std::int64_t head_dim, std::int64_t first, std::int64_t tokens);

/// Hands out parts of scratch (scratch.hpp), each aligned to a cache line.
class ScratchParts {
 public:
  /// @param floats  sum of padded() of all parts
  explicit ScratchParts(std::int64_t floats)
      : next_(static_cast<float*>(host_scratch(floats * sizeof(float)))) {}
  static constexpr std::int64_t padded(std::int64_t floats) { return round_up(floats, 16); }
  float* take(std::int64_t floats) {
    float* part = next_;
    next_ += padded(floats);
    return part;
  }

 private:
  float* next_;
};

}  // namespace fourfold::kernels
