// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The backward pass on a device where the vendor's library does not serve
/// (attention_team_device.hpp): gradients of queries by a thread for each query, those of keys and
/// values by a thread for each key, over all query heads of its group.
#include "attention_backend.hpp"
#include "attention_team_device.hpp"
#include "enqueue.hpp"
#include "runtime/launch.hpp"
#include "vectors/vector_math.hpp"

namespace fourfold::kernels {
namespace {

/// What both passes read.
struct Given {
  AttentionShape shape;
  ConstHeads q;
  ConstHeads k;
  ConstHeads v;
  ConstHeads dout;
  const float* lse_BNT;
  const float* delta_BNT;

  KOKKOS_FUNCTION std::int64_t row(std::int64_t b, std::int64_t n, std::int64_t query) const {
    return (b * shape.heads + n) * shape.query_tokens + query;
  }
};

template <class T, int room>
struct DifferentiateQueries {
  Given given;
  Heads dq;
  Write write;
  std::int64_t blocks;  // of queries per head

  static constexpr std::int64_t floats = 2 * std::int64_t{tile_tokens} * room;

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const AttentionShape& shape = given.shape;
    const std::int64_t item = team.league_rank();
    const std::int64_t block = blocks - 1 - item % blocks;
    const std::int64_t n = item / blocks % shape.heads;
    const std::int64_t b = item / blocks / shape.heads;
    const std::int64_t kv = n / (shape.heads / shape.kv_heads);
    const Range mine = tokens_of(block, shape.query_tokens, team.team_size());
    const std::int64_t query = mine.begin + team.team_rank();
    const bool is_here = team.team_rank() < mine.count;
    auto* const keys = team_memory<float>(team, floats);
    float* const values = keys + tile_tokens * room;
    float q_row[room] = {};
    float dout_row[room] = {};
    float sum[room] = {};
    float lse = 0;
    float delta = 0;
    if (is_here) {
      load_row(rows_of_head<T>(shape, given.q, b, n).row(query), shape.head_dim, shape.scale,
               q_row);
      load_row(rows_of_head<T>(shape, given.dout, b, n).row(query), shape.head_dim, 1.0F, dout_row);
      lse = given.lse_BNT[given.row(b, n, query)];
      delta = given.delta_BNT[given.row(b, n, query)];
    }
    const std::int64_t seen = is_here ? keys_seen(shape, query) : 0;
    const std::int64_t most = keys_seen(shape, mine.begin + mine.count - 1);
    for (std::int64_t first = 0; first < most; first += tile_tokens) {
      const int count = static_cast<int>(least(tile_tokens, most - first));
      team.team_barrier();
      load_tile<room>(team, rows_of_head<T>(shape, given.k, b, kv), first, count, shape.head_dim,
                      keys);
      load_tile<room>(team, rows_of_head<T>(shape, given.v, b, kv), first, count, shape.head_dim,
                      values);
      team.team_barrier();
      const int visible = static_cast<int>(greatest(0, least(count, seen - first)));
      for (int j = 0; j < visible; ++j) {
        const float weight = vector_exp_minus(lse - dot(q_row, keys + j * room));
        add_scaled(sum, weight * (dot(dout_row, values + j * room) - delta), keys + j * room);
      }
    }
    if (is_here) {
      store_row<room, T>(shape, dq, b, query, n, sum, shape.scale, write);
    }
  }
};

template <class T, int room>
struct DifferentiateKeys {
  Given given;
  Heads dk;
  Heads dv;
  Write write;
  std::int64_t blocks;  // of keys per head

  static constexpr std::int64_t floats = 2 * std::int64_t{tile_tokens} * room + 2 * tile_tokens;

  /// One key with its value, and what becomes of them.
  struct Key {
    float k[room];
    float v[room];
    float dk[room];
    float dv[room];
  };
  /// Queries of a head.
  struct Tile {
    float* q;
    float* dout;
    float* lse;
    float* delta;
  };

  KOKKOS_FUNCTION void operator()(const Team& team) const {
    const AttentionShape& shape = given.shape;
    const std::int64_t item = team.league_rank();
    const std::int64_t block = item % blocks;
    const std::int64_t kv = item / blocks % shape.kv_heads;
    const std::int64_t b = item / blocks / shape.kv_heads;
    const Range mine = tokens_of(block, shape.key_tokens, team.team_size());
    const std::int64_t key = mine.begin + team.team_rank();
    const bool is_here = team.team_rank() < mine.count;
    auto* const memory = team_memory<float>(team, floats);
    constexpr int rows = tile_tokens * room;
    const Tile tile{memory, memory + rows, memory + 2 * rows, memory + 2 * rows + tile_tokens};
    Key x;
    for (int h = 0; h < room; ++h) {
      x.k[h] = x.v[h] = x.dk[h] = x.dv[h] = 0;
    }
    if (is_here) {
      load_row(rows_of_head<T>(shape, given.k, b, kv).row(key), shape.head_dim, shape.scale, x.k);
      load_row(rows_of_head<T>(shape, given.v, b, kv).row(key), shape.head_dim, 1.0F, x.v);
    }
    const std::int64_t group = shape.heads / shape.kv_heads;
    // Queries before the first one that sees a key of the team are left out.
    const std::int64_t begin =
        shape.causal ? greatest(0, mine.begin - shape.query_offset) / tile_tokens * tile_tokens : 0;
    for (std::int64_t n = kv * group; n < (kv + 1) * group; ++n) {
      for (std::int64_t first = begin; first < shape.query_tokens; first += tile_tokens) {
        const int count = static_cast<int>(least(tile_tokens, shape.query_tokens - first));
        team.team_barrier();
        load(team, tile, b, n, first, count);
        team.team_barrier();
        for (int i = 0; i < count && is_here; ++i) {
          if (key < keys_seen(shape, first + i)) {
            meet(x, tile, i);
          }
        }
      }
    }
    if (is_here) {
      store_row<room, T>(shape, dk, b, key, kv, x.dk, shape.scale, write);
      store_row<room, T>(shape, dv, b, key, kv, x.dv, 1.0F, write);
    }
  }

 private:
  KOKKOS_FUNCTION void load(const Team& team, const Tile& tile, std::int64_t b, std::int64_t n,
                            std::int64_t first, int count) const {
    const AttentionShape& shape = given.shape;
    load_tile<room>(team, rows_of_head<T>(shape, given.q, b, n), first, count, shape.head_dim,
                    tile.q);
    load_tile<room>(team, rows_of_head<T>(shape, given.dout, b, n), first, count, shape.head_dim,
                    tile.dout);
    const std::int64_t row = given.row(b, n, first);
    const float* const lse = given.lse_BNT;
    const float* const delta = given.delta_BNT;
    Kokkos::parallel_for(Kokkos::TeamThreadRange(team, count), [=](int i) {
      tile.lse[i] = lse[row + i];
      tile.delta[i] = delta[row + i];
    });
  }

  KOKKOS_FUNCTION void meet(Key& x, const Tile& tile, int i) const {
    const float* const q = tile.q + i * room;
    const float* const dout = tile.dout + i * room;
    const float weight = vector_exp_minus(tile.lse[i] - dot(x.k, q));
    add_scaled(x.dv, weight, dout);
    add_scaled(x.dk, weight * (dot(x.v, dout) - tile.delta[i]), q);
  }
};

/// delta = rowsum(dout * out)
template <class Out, class T>
struct SumDelta {
  AttentionShape shape;
  ConstHeads out;
  ConstHeads dout;
  float* delta_BNT;

  KOKKOS_FUNCTION void operator()(std::int64_t item) const {
    const std::int64_t query = item % shape.query_tokens;
    const std::int64_t n = item / shape.query_tokens % shape.heads;
    const std::int64_t b = item / shape.query_tokens / shape.heads;
    const Out* const x = rows_of_head<Out>(shape, out, b, n).row(query);
    const T* const y = rows_of_head<T>(shape, dout, b, n).row(query);
    float sum = 0;
    for (std::int64_t h = 0; h < shape.head_dim; ++h) {
      sum += to_float(x[h]) * to_float(y[h]);
    }
    delta_BNT[item] = sum;
  }
};

template <class T, int room>
void differentiate(const Given& given, Heads dq, Write write_dq, Heads dk, Heads dv,
                   Write write_dkv, device::StreamRef stream) {
  const AttentionShape& shape = given.shape;
  const std::int64_t query_blocks = blocks_of(shape.query_tokens);
  const std::int64_t key_blocks = blocks_of(shape.key_tokens);
  const std::int64_t query_teams = shape.batch * shape.heads * query_blocks;
  const std::int64_t key_teams = shape.batch * shape.kv_heads * key_blocks;
  enqueue(stream, [=] {
    using OfQueries = DifferentiateQueries<T, room>;
    using OfKeys = DifferentiateKeys<T, room>;
    if (query_teams > 0) {
      launch("fourfold::attention_dq",
             league(execution_space(stream), query_teams, OfQueries::floats),
             OfQueries{given, dq, write_dq, query_blocks});
    }
    if (key_teams > 0) {
      launch("fourfold::attention_dkv", league(execution_space(stream), key_teams, OfKeys::floats),
             OfKeys{given, dk, dv, write_dkv, key_blocks});
    }
  });
}

}  // namespace

void sum_attention_delta(const AttentionShape& shape, ConstHeads out, ConstHeads dout,
                         float* delta_BNT, device::StreamRef stream) {
  const std::int64_t items = shape.batch * shape.heads * shape.query_tokens;
  with_storage(out.dtype, [&]<class Out>(Out) {
    with_storage(dout.dtype, [&]<class T>(T) {
      for_each("attention_delta", items, stream, SumDelta<Out, T>{shape, out, dout, delta_BNT});
    });
  });
}

void portable_attention_backward(const AttentionGradients& with, device::StreamRef stream) {
  const Given given{with.shape, with.q, with.k, with.v, with.dout, with.lse_BNT, with.delta_BNT};
  with_storage(with.q.dtype, [&]<class T>(T) {
    with_room(with.shape.head_dim, [&]<int room>(std::integral_constant<int, room>) {
      differentiate<T, room>(given, with.dq, with.write_dq, with.dk, with.dv, with.write_dkv,
                             stream);
    });
  });
}

void differentiate_attention_part(const AttentionGradients& with, device::StreamRef stream) {
  if (with.out.data == nullptr || !vendor_differentiates(with, stream)) {
    portable_attention_backward(with, stream);
  }
}

void differentiate_attention(const AttentionGradients& with, float* delta_BNT,
                             device::StreamRef stream) {
  if (!vendor_differentiates(with, stream)) {
    sum_attention_delta(with.shape, with.out, with.dout, delta_BNT, stream);
    portable_attention_backward(with, stream);
  }
}

}  // namespace fourfold::kernels
