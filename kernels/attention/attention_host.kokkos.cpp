// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The forward pass on the CPU. One work item is a block of queries of one head. It walks over the
/// keys it sees in blocks and keeps, per query, the running maximum and sum of the softmax and the
/// unnormalised output. Within a key block it goes on by panels of tile_rows queries: their scores
/// are made, turned into probabilities and multiplied with the values while they are in the
/// first-level cache. Work items share nothing that is written, so results do not depend on the
/// number of threads.
#include "attention_backend.hpp"
#include "attention_blocks_host.hpp"
#include "enqueue.hpp"
#include "vectors/vector_math.hpp"

#include <Kokkos_Core.hpp>

#include <cmath>
#include <limits>

namespace fourfold::kernels {
namespace {

/// Queries of a work item: each block of keys is brought into shape once for so many.
constexpr std::int64_t query_block = 4 * attention_block;

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

/// The scratch of one work item.
struct ForwardBlocks {
  explicit ForwardBlocks(const AttentionShape& shape) : width(padded_head_dim(shape)) {
    const std::int64_t queries = ScratchParts::padded(query_block * width);
    const std::int64_t keys = ScratchParts::padded(attention_block * width);
    const std::int64_t panel = ScratchParts::padded(tile_rows * attention_block);
    const std::int64_t rows = ScratchParts::padded(query_block);
    ScratchParts parts(2 * queries + 2 * keys + panel + 2 * rows);
    q = parts.take(queries);
    out = parts.take(queries);
    k_transposed = parts.take(keys);
    v = parts.take(keys);
    scores = parts.take(panel);
    maximum = parts.take(rows);
    sum = parts.take(rows);
  }

  std::int64_t width;
  float* q;             // [query_block, width], times the scale
  float* out;           // [query_block, width]
  float* k_transposed;  // [head_dim, attention_block]
  float* v;             // [attention_block, width]
  float* scores;        // [tile_rows, attention_block]
  float* maximum;       // [query_block]
  float* sum;           // [query_block]
};

/// Turns one query's scores against a block of keys into unnormalised probabilities, zero from
/// `visible` to `columns`.
void absorb_scores(float* __restrict score, std::int64_t visible, std::int64_t columns,
                   float& maximum, float& sum, float* __restrict out, std::int64_t width) {
  std::fill(score + visible, score + columns, minus_infinity);
  if (visible == 0) {
    std::fill(score, score + columns, 0.0F);
    return;
  }
  float next = maximum;
#pragma omp simd reduction(max : next)
  for (std::int64_t j = 0; j < columns; ++j) {
    next = score[j] > next ? score[j] : next;
  }
  float row_sum = 0;
#pragma omp simd reduction(+ : row_sum)
  for (std::int64_t j = 0; j < columns; ++j) {
    score[j] = vector_exp_minus(next - score[j]);
    row_sum += score[j];
  }
  const float correction = vector_exp_minus(next - maximum);
  maximum = next;
  sum = sum * correction + row_sum;
  for (std::int64_t h = 0; h < width; ++h) {
    out[h] *= correction;
  }
}

struct AttendQueryBlock {
  AttentionShape shape;
  ConstHeads q;
  ConstHeads k;
  ConstHeads v;
  Heads out;
  float* lse_BNT;
  std::int64_t blocks;  // of queries per head
  bool merges;          // with what out and lse_BNT hold

  void operator()(std::int64_t item) const {
    // Later queries see more keys: they come first, which evens out the threads.
    const std::int64_t first = (blocks - 1 - item % blocks) * query_block;
    const std::int64_t n = item / blocks % shape.heads;
    const std::int64_t b = item / blocks / shape.heads;
    const std::int64_t kv = n / (shape.heads / shape.kv_heads);
    const std::int64_t queries = std::min(query_block, shape.query_tokens - first);
    const std::int64_t padded = round_up(queries, tile_rows);
    const ForwardBlocks blocks_of_item(shape);
    const ForwardBlocks& x = blocks_of_item;
    load_rows(head(shape, q, b, n), shape.head_dim, first, queries, padded, shape.scale, x.q,
              x.width);
    begin(x, b, n, first, queries, padded);

    const std::int64_t seen = visible_keys(shape, first + queries - 1, 0, shape.key_tokens);
    for (std::int64_t key = 0; key < seen; key += attention_block) {
      const std::int64_t keys = std::min(attention_block, seen - key);
      load_transposed(head(shape, k, b, kv), shape.head_dim, key, keys, x.k_transposed);
      load_rows(head(shape, v, b, kv), shape.head_dim, key, keys, keys, 1.0F, x.v, x.width);
      for (std::int64_t row = 0; row < queries; row += tile_rows) {
        attend_panel(x, first, row, std::min(tile_rows, queries - row), key, keys);
      }
    }
    finish(x, b, n, first, queries);
  }

 private:
  float* lse_of(std::int64_t b, std::int64_t n, std::int64_t first) const {
    return lse_BNT + (b * shape.heads + n) * shape.query_tokens + first;
  }

  /// No key seen yet; or those of earlier calls, whose result is a sum of 1 at a maximum of lse.
  void begin(const ForwardBlocks& x, std::int64_t b, std::int64_t n, std::int64_t first,
             std::int64_t queries, std::int64_t padded) const {
    std::fill(x.maximum, x.maximum + padded, minus_infinity);
    std::fill(x.sum, x.sum + padded, 0.0F);
    if (!merges) {
      std::fill(x.out, x.out + padded * x.width, 0.0F);
      return;
    }
    const ConstHeads so_far{out.data, out.dtype, out.batch_stride, out.token_stride};
    load_rows(head(shape, so_far, b, n), shape.head_dim, first, queries, padded, 1.0F, x.out,
              x.width);
    const float* lse = lse_of(b, n, first);
    for (std::int64_t i = 0; i < queries; ++i) {
      x.maximum[i] = lse[i];
      x.sum[i] = lse[i] == minus_infinity ? 0.0F : 1.0F;
    }
  }

  /// tile_rows queries from `row` of the block, of which `queries` are there, against one block of
  /// keys.
  void attend_panel(const ForwardBlocks& x, std::int64_t first, std::int64_t row,
                    std::int64_t queries, std::int64_t key, std::int64_t keys) const {
    const std::int64_t seen = visible_keys(shape, first + row + queries - 1, key, keys);
    if (seen == 0) {
      return;
    }
    const std::int64_t columns = round_up(seen, register_lanes);
    multiply_panel<false>({x.q + row * x.width, x.width, 1}, x.k_transposed, attention_block,
                          x.scores, attention_block, columns, shape.head_dim);
    for (std::int64_t i = 0; i < tile_rows; ++i) {
      const std::int64_t visible =
          i < queries ? visible_keys(shape, first + row + i, key, keys) : 0;
      absorb_scores(x.scores + i * attention_block, visible, columns, x.maximum[row + i],
                    x.sum[row + i], x.out + (row + i) * x.width, x.width);
    }
    multiply_panel<true>({x.scores, attention_block, 1}, x.v, x.width, x.out + row * x.width,
                         x.width, x.width, seen);
  }

  void finish(const ForwardBlocks& x, std::int64_t b, std::int64_t n, std::int64_t first,
              std::int64_t queries) const {
    float* lse = lse_of(b, n, first);
    for (std::int64_t i = 0; i < queries; ++i) {
      const bool sees_none = x.maximum[i] == minus_infinity && x.sum[i] == 0.0F;
      lse[i] = sees_none ? minus_infinity : x.maximum[i] + std::log(x.sum[i]);
      const float inverse = sees_none ? 0.0F : 1.0F / x.sum[i];
      float* row = x.out + i * x.width;
      for (std::int64_t h = 0; h < x.width; ++h) {
        row[h] *= inverse;
      }
    }
    store_rows(x.out, x.width, 1.0F, head(shape, out, b, n), shape.head_dim, first, queries);
  }
};

}  // namespace

void attend(const AttentionShape& shape, ConstHeads q, ConstHeads k, ConstHeads v, Heads out,
            float* lse_BNT, bool merges, device::StreamRef stream) {
  const std::int64_t blocks = (shape.query_tokens + query_block - 1) / query_block;
  using Policy =
      Kokkos::RangePolicy<Kokkos::DefaultHostExecutionSpace, Kokkos::Schedule<Kokkos::Dynamic>,
                          Kokkos::IndexType<std::int64_t>>;
  enqueue(stream, [=] {
    Kokkos::parallel_for("fourfold::attention", Policy(0, shape.batch * shape.heads * blocks),
                         AttendQueryBlock{shape, q, k, v, out, lse_BNT, blocks, merges});
  });
}

}  // namespace fourfold::kernels
