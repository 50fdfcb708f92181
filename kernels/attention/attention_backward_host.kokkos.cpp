// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The backward pass on the CPU. One work item is one key/value head of one sequence, with all
/// query heads that share it: it owns every number it adds to, in a fixed order, so results do not
/// depend on the number of threads. It walks over blocks of keys, whose gradients it finishes one
/// after the other, and for each over the blocks of queries that see it; the gradients of the
/// queries are gathered in f32 scratch. Probabilities come from the scores and the kept log-sum-exp
/// again. Five products per pair of blocks: scores, dP, dQ, dK, dV.
#include "attention_backend.hpp"
#include "attention_blocks_host.hpp"
#include "enqueue.hpp"
#include "vectors/vector_math.hpp"

#include <fourfold/base/box.hpp>

#include <Kokkos_Core.hpp>

namespace fourfold::kernels {
namespace {

/// The scratch of one work item.
struct BackwardBlocks {
  explicit BackwardBlocks(const AttentionShape& shape)
      : width(padded_head_dim(shape)), padded_queries(round_up(shape.query_tokens, tile_rows)) {
    const std::int64_t group = shape.heads / shape.kv_heads;
    const std::int64_t tokens = ScratchParts::padded(attention_block * width);
    const std::int64_t pairs = ScratchParts::padded(attention_block * attention_block);
    const std::int64_t all_queries = ScratchParts::padded(group * padded_queries * width);
    ScratchParts parts(7 * tokens + 2 * pairs + all_queries);
    q = parts.take(tokens);
    dout = parts.take(tokens);
    k = parts.take(tokens);
    k_transposed = parts.take(tokens);
    v_transposed = parts.take(tokens);
    dk = parts.take(tokens);
    dv = parts.take(tokens);
    p = parts.take(pairs);
    ds = parts.take(pairs);
    dq = parts.take(all_queries);
  }

  std::int64_t width;
  std::int64_t padded_queries;
  float* q;             // [attention_block, width], times the scale
  float* dout;          // [attention_block, width]
  float* k;             // [attention_block, width]
  float* k_transposed;  // [head_dim, attention_block]
  float* v_transposed;  // [head_dim, attention_block]
  float* dk;            // [attention_block, width]
  float* dv;            // [attention_block, width]
  float* p;             // [attention_block queries, attention_block keys]
  float* ds;            // [attention_block queries, attention_block keys]
  float* dq;            // [group, padded_queries, width], before the scale
};

/// p = exp(score - lse), ds = p * (dp - delta): in the places of the scores and of dp.
void differentiate_softmax(float* __restrict score, float* __restrict dp, std::int64_t visible,
                           float lse, float delta) {
#pragma omp simd
  for (std::int64_t j = 0; j < visible; ++j) {
    score[j] = vector_exp_minus(lse - score[j]);
    dp[j] = score[j] * (dp[j] - delta);
  }
  std::fill(score + visible, score + attention_block, 0.0F);
  std::fill(dp + visible, dp + attention_block, 0.0F);
}

struct DifferentiateHead : AttentionGradients {
  void operator()(std::int64_t item) const {
    const std::int64_t b = item / shape.kv_heads;
    const std::int64_t kv = item % shape.kv_heads;
    const std::int64_t group = shape.heads / shape.kv_heads;
    const BackwardBlocks x(shape);
    std::fill(x.dq, x.dq + group * x.padded_queries * x.width, 0.0F);
    for (std::int64_t key = 0; key < shape.key_tokens; key += attention_block) {
      const std::int64_t keys = std::min(attention_block, shape.key_tokens - key);
      const std::int64_t padded = round_up(keys, tile_rows);
      load_rows(head(shape, k, b, kv), shape.head_dim, key, keys, keys, 1.0F, x.k, x.width);
      load_transposed(head(shape, k, b, kv), shape.head_dim, key, keys, x.k_transposed);
      load_transposed(head(shape, v, b, kv), shape.head_dim, key, keys, x.v_transposed);
      std::fill(x.dk, x.dk + padded * x.width, 0.0F);
      std::fill(x.dv, x.dv + padded * x.width, 0.0F);
      const std::int64_t first_block = first_query(shape, key) / attention_block;
      for (std::int64_t n = kv * group; n < (kv + 1) * group; ++n) {
        for (std::int64_t first = first_block * attention_block; first < shape.query_tokens;
             first += attention_block) {
          add_pair(x, b, n, {first, std::min(attention_block, shape.query_tokens - first)},
                   {key, keys});
        }
      }
      write_rows(write_dkv, x.dk, x.width, 1.0F, head(shape, dk, b, kv), key, keys);
      write_rows(write_dkv, x.dv, x.width, 1.0F, head(shape, dv, b, kv), key, keys);
    }
    for (std::int64_t n = kv * group; n < (kv + 1) * group; ++n) {
      write_rows(write_dq, dq_of(x, n), x.width, shape.scale, head(shape, dq, b, n), 0,
                 shape.query_tokens);
    }
  }

 private:
  void write_rows(Write write, const float* source, std::int64_t stride, float factor,
                  const Heads& x, std::int64_t first, std::int64_t tokens) const {
    if (write == Write::replace) {
      store_rows(source, stride, factor, x, shape.head_dim, first, tokens);
    } else {
      add_rows(source, stride, factor, x, shape.head_dim, first, tokens);
    }
  }

  float* dq_of(const BackwardBlocks& x, std::int64_t n) const {
    return x.dq + n % (shape.heads / shape.kv_heads) * x.padded_queries * x.width;
  }

  std::int64_t row_of(std::int64_t b, std::int64_t n, std::int64_t query) const {
    return (b * shape.heads + n) * shape.query_tokens + query;
  }

  /// These queries of head n and these keys.
  void add_pair(const BackwardBlocks& x, std::int64_t b, std::int64_t n, Range queries,
                Range keys) const {
    const std::int64_t padded = round_up(queries.count, tile_rows);
    load_rows(head(shape, q, b, n), shape.head_dim, queries.begin, queries.count, padded,
              shape.scale, x.q, x.width);
    load_rows(head(shape, dout, b, n), shape.head_dim, queries.begin, queries.count, padded, 1.0F,
              x.dout, x.width);
    for (std::int64_t row = 0; row < queries.count; row += tile_rows) {
      add_query_panel(x, b, n, queries, keys, row);
    }
    for (std::int64_t j = 0; j < keys.count; j += tile_rows) {
      // Rows before this one do not see key j or any after it.
      const std::int64_t row =
          std::max<std::int64_t>(0, first_query(shape, keys.begin + j) - queries.begin);
      const std::int64_t rows = padded - row;
      if (rows <= 0) {
        break;
      }
      const std::int64_t corner = row * attention_block + j;
      multiply_panel<true>({x.p + corner, 1, attention_block}, x.dout + row * x.width, x.width,
                           x.dv + j * x.width, x.width, x.width, rows);
      multiply_panel<true>({x.ds + corner, 1, attention_block}, x.q + row * x.width, x.width,
                           x.dk + j * x.width, x.width, x.width, rows);
    }
  }

  /// Probabilities and their gradient for tile_rows queries, and what these add to dq.
  void add_query_panel(const BackwardBlocks& x, std::int64_t b, std::int64_t n, Range queries,
                       Range keys, std::int64_t row) const {
    float* p = x.p + row * attention_block;
    float* ds = x.ds + row * attention_block;
    const std::int64_t panel_queries = std::min(tile_rows, queries.count - row);
    const std::int64_t seen =
        visible_keys(shape, queries.begin + row + panel_queries - 1, keys.begin, keys.count);
    const std::int64_t columns = round_up(seen, register_lanes);
    if (seen > 0) {
      multiply_panel<false>({x.q + row * x.width, x.width, 1}, x.k_transposed, attention_block, p,
                            attention_block, columns, shape.head_dim);
      multiply_panel<false>({x.dout + row * x.width, x.width, 1}, x.v_transposed, attention_block,
                            ds, attention_block, columns, shape.head_dim);
    }
    for (std::int64_t i = 0; i < tile_rows; ++i) {
      const std::int64_t query = queries.begin + row + i;
      const std::int64_t index = row_of(b, n, query);
      const bool real = i < panel_queries;
      differentiate_softmax(p + i * attention_block, ds + i * attention_block,
                            real ? visible_keys(shape, query, keys.begin, keys.count) : 0,
                            real ? lse_BNT[index] : 0.0F, real ? delta_BNT[index] : 0.0F);
    }
    if (seen > 0) {
      multiply_panel<true>({ds, attention_block, 1}, x.k, x.width,
                           dq_of(x, n) + (queries.begin + row) * x.width, x.width, x.width, seen);
    }
  }
};

/// Makes delta of head `item`, of all heads of all sequences.
void sum_delta(const AttentionShape& shape, const ConstHeads& out, const ConstHeads& dout,
               float* delta_BNT, std::int64_t item) {
  const std::int64_t b = item / shape.heads;
  const std::int64_t n = item % shape.heads;
  const std::int64_t width = padded_head_dim(shape);
  const std::int64_t block = ScratchParts::padded(attention_block * width);
  ScratchParts parts(2 * block);
  float* const x = parts.take(block);
  float* const y = parts.take(block);
  for (std::int64_t first = 0; first < shape.query_tokens; first += attention_block) {
    const std::int64_t queries = std::min(attention_block, shape.query_tokens - first);
    load_rows(head(shape, out, b, n), shape.head_dim, first, queries, queries, 1.0F, x, width);
    load_rows(head(shape, dout, b, n), shape.head_dim, first, queries, queries, 1.0F, y, width);
    for (std::int64_t i = 0; i < queries; ++i) {
      float sum = 0;
#pragma omp simd reduction(+ : sum)
      for (std::int64_t h = 0; h < width; ++h) {
        sum += x[i * width + h] * y[i * width + h];
      }
      delta_BNT[item * shape.query_tokens + first + i] = sum;
    }
  }
}

using Policy =
    Kokkos::RangePolicy<Kokkos::DefaultHostExecutionSpace, Kokkos::Schedule<Kokkos::Dynamic>,
                        Kokkos::IndexType<std::int64_t>>;

}  // namespace

void sum_attention_delta(const AttentionShape& shape, ConstHeads out, ConstHeads dout,
                         float* delta_BNT, device::StreamRef stream) {
  enqueue(stream, [=] {
    Kokkos::parallel_for("fourfold::attention_delta", Policy(0, shape.batch * shape.heads),
                         [=](std::int64_t item) { sum_delta(shape, out, dout, delta_BNT, item); });
  });
}

void differentiate_attention_part(const AttentionGradients& with, device::StreamRef stream) {
  enqueue(stream, [=] {
    Kokkos::parallel_for("fourfold::attention_backward",
                         Policy(0, with.shape.batch * with.shape.kv_heads),
                         DifferentiateHead{with});
  });
}

void differentiate_attention(const AttentionGradients& with, float* delta_BNT,
                             device::StreamRef stream) {
  sum_attention_delta(with.shape, with.out, with.dout, delta_BNT, stream);
  differentiate_attention_part(with, stream);
}

}  // namespace fourfold::kernels
