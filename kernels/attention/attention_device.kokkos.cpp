// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The forward pass on a device where the vendor's library does not serve: a thread has one query
/// (attention_team_device.hpp), and keeps the running maximum and sum of its softmax.
#include "attention_backend.hpp"
#include "attention_team_device.hpp"
#include "enqueue.hpp"
#include "vectors/vector_math.hpp"

#include <cmath>

namespace fourfold::kernels {
namespace {

template <class T, int room>
struct Attend {
  AttentionShape shape;
  ConstHeads q;
  ConstHeads k;
  ConstHeads v;
  Heads out;
  float* lse_BNT;
  std::int64_t blocks;  // of queries per head
  bool merges;          // with what out and lse_BNT hold

  static constexpr std::int64_t floats = 2 * std::int64_t{tile_tokens} * room;

  /// What one query has seen so far.
  struct Query {
    float q[room];
    float out[room];
    float maximum;
    float sum;
  };

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const std::int64_t item = team.league_rank();
    // Later queries see more keys: they come first, which evens out the teams.
    const std::int64_t block = blocks - 1 - item % blocks;
    const std::int64_t n = item / blocks % shape.heads;
    const std::int64_t b = item / blocks / shape.heads;
    const std::int64_t kv = n / (shape.heads / shape.kv_heads);
    const Range mine = tokens_of(block, shape.query_tokens, team.team_size());
    const std::int64_t query = mine.begin + team.team_rank();
    const bool is_here = team.team_rank() < mine.count;
    auto* const keys = team_memory<float>(team, floats);
    float* const values = keys + tile_tokens * room;
    Query x;
    begin(x, b, n, query, is_here);
    const std::int64_t seen = is_here ? keys_seen(shape, query) : 0;
    const std::int64_t most = keys_seen(shape, mine.begin + mine.count - 1);
    for (std::int64_t first = 0; first < most; first += tile_tokens) {
      const int count = static_cast<int>(least(tile_tokens, most - first));
      team.team_barrier();
      load_tile<room>(team, rows_of_head<T>(shape, k, b, kv), first, count, shape.head_dim, keys);
      load_tile<room>(team, rows_of_head<T>(shape, v, b, kv), first, count, shape.head_dim, values);
      team.team_barrier();
      absorb(x, keys, values, static_cast<int>(greatest(0, least(count, seen - first))));
    }
    if (is_here) {
      finish(x, b, n, query);
    }
  }

 private:
  KOKKOS_FUNCTION float* lse_of(std::int64_t b, std::int64_t n, std::int64_t query) const {
    return lse_BNT + (b * shape.heads + n) * shape.query_tokens + query;
  }

  /// No key seen yet; or those of earlier calls, whose result is a sum of 1 at a maximum of lse.
  KOKKOS_FUNCTION void begin(Query& x, std::int64_t b, std::int64_t n, std::int64_t query,
                             bool is_here) const {
    x.maximum = minus_infinity;
    x.sum = 0;
    for (int h = 0; h < room; ++h) {
      x.q[h] = 0;
      x.out[h] = 0;
    }
    if (!is_here) {
      return;
    }
    load_row(rows_of_head<T>(shape, q, b, n).row(query), shape.head_dim, shape.scale, x.q);
    if (merges) {
      load_row(rows_of_head<float>(shape, out, b, n).row(query), shape.head_dim, 1.0F, x.out);
      x.maximum = *lse_of(b, n, query);
      x.sum = x.maximum == minus_infinity ? 0.0F : 1.0F;
    }
  }

  /// The first `visible` rows of a tile.
  KOKKOS_FUNCTION void absorb(Query& x, const float* keys, const float* values, int visible) const {
    if (visible == 0) {
      return;
    }
    float score[tile_tokens];
    float next = x.maximum;
    for (int j = 0; j < visible; ++j) {
      score[j] = dot(x.q, keys + j * room);
      next = score[j] > next ? score[j] : next;
    }
    const float correction = vector_exp_minus(next - x.maximum);
    x.sum *= correction;
    for (int h = 0; h < room; ++h) {
      x.out[h] *= correction;
    }
    for (int j = 0; j < visible; ++j) {
      const float weight = vector_exp_minus(next - score[j]);
      x.sum += weight;
      add_scaled(x.out, weight, values + j * room);
    }
    x.maximum = next;
  }

  KOKKOS_FUNCTION void finish(const Query& x, std::int64_t b, std::int64_t n,
                              std::int64_t query) const {
    const bool sees_none = x.sum == 0.0F;
    *lse_of(b, n, query) = sees_none ? minus_infinity : x.maximum + std::log(x.sum);
    store_row<room, T>(shape, out, b, query, n, x.out, sees_none ? 0.0F : 1.0F / x.sum,
                       Write::replace);
  }
};

}  // namespace

void portable_attention(const AttentionShape& shape, ConstHeads q, ConstHeads k, ConstHeads v,
                        Heads out, float* lse_BNT, bool merges, device::StreamRef stream) {
  const std::int64_t blocks = blocks_of(shape.query_tokens);
  const std::int64_t teams = shape.batch * shape.heads * blocks;
  with_storage(q.dtype, [&]<class T>(T) {
    with_room(shape.head_dim, [&]<int room>(std::integral_constant<int, room>) {
      enqueue(stream, [=] {
        using Body = Attend<T, room>;
        launch("fourfold::attention", league(execution_space(stream), teams, Body::floats),
               Body{shape, q, k, v, out, lse_BNT, blocks, merges});
      });
    });
  });
}

void attend(const AttentionShape& shape, ConstHeads q, ConstHeads k, ConstHeads v, Heads out,
            float* lse_BNT, bool merges, device::StreamRef stream) {
  if (!vendor_attends(shape, q, k, v, out, lse_BNT, merges, stream)) {
    portable_attention(shape, q, k, v, out, lse_BNT, merges, stream);
  }
}

}  // namespace fourfold::kernels
