// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What the passes of attention on a device share. A thread has one token of one head: its row is
/// in registers, and its team walks together over the rows that it meets, a tile at a time, which
/// all read from the team's memory. Nothing is written by two threads, and the order of sums is
/// that of tokens, so results depend on no number of threads.
#pragma once

#include "attention_backend.hpp"
#include "runtime/launch.hpp"
#include "vectors/storage.hpp"

#include <fourfold/base/box.hpp>
#include <fourfold/base/contract.hpp>
#include <fourfold/kernels/attention.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>
#include <limits>
#include <type_traits>

namespace fourfold::kernels {

using TeamPolicy = Kokkos::TeamPolicy<Kokkos::IndexType<std::int64_t>>;
using Team = TeamPolicy::member_type;

/// Rows of a tile.
inline constexpr int tile_tokens = 16;
/// Tokens, and threads, of a team on a device: on a host a team has one thread.
inline constexpr int most_team_threads = teams_on_host ? 1 : 64;

inline constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

/// Calls body(std::integral_constant<int, room>) with room for that many features in registers.
/// @pre 0 < head_dim <= most_device_head_dim
template <class Body>
void with_room(std::int64_t head_dim, const Body& body) {
  FOURFOLD_EXPECT(head_dim > 0 && head_dim <= most_device_head_dim);
  if (head_dim <= 32) {
    body(std::integral_constant<int, 32>{});
  } else if (head_dim <= 64) {
    body(std::integral_constant<int, 64>{});
  } else if (head_dim <= 128) {
    body(std::integral_constant<int, 128>{});
  } else {
    body(std::integral_constant<int, int{most_device_head_dim}>{});
  }
}

/// One head of one sequence, of elements T.
template <class T>
struct RowsOfHead {
  const T* data = nullptr;
  std::int64_t stride = 0;
  KOKKOS_FUNCTION const T* row(std::int64_t token) const { return data + token * stride; }
};
template <class T, class Pointer>
KOKKOS_FUNCTION RowsOfHead<T> rows_of_head(const AttentionShape& shape,
                                           const BasicHeads<Pointer>& x, std::int64_t b,
                                           std::int64_t n) {
  return {x.template as<const T>() + b * x.batch_stride + n * shape.head_dim, x.token_stride};
}

/// row[h] = factor * x[h], zero after head_dim.
template <int room, class T>
KOKKOS_FUNCTION void load_row(const T* x, std::int64_t head_dim, float factor, float (&row)[room]) {
  for (int h = 0; h < room; ++h) {
    row[h] = h < head_dim ? factor * to_float(x[h]) : 0.0F;
  }
}

/// Writes a row of T, or of f32, which `x` says.
template <int room, class T>
KOKKOS_FUNCTION void store_row(const AttentionShape& shape, const Heads& x, std::int64_t b,
                               std::int64_t token, std::int64_t n, const float (&row)[room],
                               float factor, Write write) {
  const std::int64_t first = b * x.batch_stride + token * x.token_stride + n * shape.head_dim;
  for (int h = 0; h < room && h < shape.head_dim; ++h) {
    if (x.dtype == DType::f32) {
      float& target = x.as<float>()[first + h];
      target = factor * row[h] + (write == Write::accumulate ? target : 0.0F);
    } else {
      store(x.as<T>()[first + h], factor * row[h]);
    }
  }
}

/// tile[i][h] = x[first + i][h] for `tokens` rows, `room` floats apart, zero after head_dim. The
/// whole team.
template <int room, class T>
KOKKOS_FUNCTION void load_tile(const Team& team, const RowsOfHead<T>& x, std::int64_t first,
                               int tokens, std::int64_t head_dim, float* tile) {
  Kokkos::parallel_for(Kokkos::TeamThreadRange(team, tokens * room), [=](int i) {
    const int h = i % room;
    tile[i] = h < head_dim ? to_float(x.row(first + i / room)[h]) : 0.0F;
  });
}

template <int room>
KOKKOS_FUNCTION float dot(const float (&a)[room], const float* b) {
  float sum = 0;
  for (int h = 0; h < room; ++h) {
    sum += a[h] * b[h];
  }
  return sum;
}

/// sum += factor * row
template <int room>
KOKKOS_FUNCTION void add_scaled(float (&sum)[room], float factor, const float* row) {
  for (int h = 0; h < room; ++h) {
    sum[h] += factor * row[h];
  }
}

KOKKOS_FUNCTION inline std::int64_t least(std::int64_t a, std::int64_t b) {
  return a < b ? a : b;
}
KOKKOS_FUNCTION inline std::int64_t greatest(std::int64_t a, std::int64_t b) {
  return a > b ? a : b;
}

/// How many keys a query sees: the first ones.
KOKKOS_FUNCTION inline std::int64_t keys_seen(const AttentionShape& shape, std::int64_t query) {
  return shape.causal ? greatest(0, least(query + shape.query_offset + 1, shape.key_tokens))
                      : shape.key_tokens;
}

/// Tokens of a team.
KOKKOS_FUNCTION inline Range tokens_of(std::int64_t block, std::int64_t tokens, int threads) {
  const std::int64_t first = block * threads;
  return {first, least(threads, tokens - first)};
}

inline std::int64_t blocks_of(std::int64_t tokens) {
  return (tokens + most_team_threads - 1) / most_team_threads;
}

/// A league of `teams` with room for `floats` in each team's memory.
inline TeamPolicy league(const Kokkos::DefaultExecutionSpace& space, std::int64_t teams,
                         std::int64_t floats) {
  TeamPolicy policy(space, static_cast<int>(teams), most_team_threads);
  policy.set_scratch_size(0, Kokkos::PerTeam(static_cast<int>(floats * sizeof(float))));
  return policy;
}

}  // namespace fourfold::kernels
