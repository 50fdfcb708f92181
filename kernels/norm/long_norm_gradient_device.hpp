// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The norms' backward pass for rows that registers do not hold.
#pragma once

#include "norm_gradient_device.hpp"

namespace fourfold::kernels {

/// A team per row, which reads it twice, and leaves the weight gradients to another kernel.
template <class T, bool whole, bool centred>
struct LongNormBackward {
  BlockedRows<T, whole> with;

  using Threads = RowThreads<norm_warps, false>;
  static constexpr int step = Threads::threads * pack_elements<T>;

  KOKKOS_FUNCTION void operator()(const RowTeam& team) const {
    const std::int64_t t = team.league_rank();
    Threads threads(team);
    const T* const dy = with.dy_TD + t * with.features;
    const T* const x = with.x_TD + t * with.features;
    const float mean = centred ? with.mean_T[t] : 0.0F;
    const int begin = threads.rank() * pack_elements<T>;
    float sums[2] = {0, 0};
    for (int first = begin; first < with.features; first += step) {
      add_pack<T>(load(dy, first), load(x, first), load(with.weight_D, first), mean, sums);
    }
    const RowMeans row = row_means<centred>(threads, sums, mean, with.rstd_T[t], with.features);
    for (int first = begin; first < with.features; first += step) {
      add_gradient(with, with.dx_TD + t * with.features, first,
                   load(with.dx_TD + t * with.features, first), load(dy, first), load(x, first),
                   row, [](int /*i*/, float /*dy*/, float /*xhat*/) {});
    }
  }

  KOKKOS_FORCEINLINE_FUNCTION PackWords load(const T* row, int first) const {
    return load_part(row, first, with.features, with.whole);
  }
};

/// Of one block and one column: neighbouring threads read neighbouring columns.
template <class T, bool whole, bool centred>
struct LongWeightGradient {
  BlockedRows<T, whole> with;

  KOKKOS_FUNCTION void operator()(std::int64_t item) const {
    const std::int64_t block = item / with.features;
    const std::int64_t d = item % with.features;
    const std::int64_t begin = block * with.block_rows;
    const std::int64_t left = with.rows - begin;
    const std::int64_t end = begin + (left < with.block_rows ? left : with.block_rows);
    float dweight = 0;
    float dbias = 0;
    for (std::int64_t t = begin; t < end; ++t) {
      const float dy = to_float(with.dy_TD[t * with.features + d]);
      const float mean = centred ? with.mean_T[t] : 0.0F;
      const float xhat = (to_float(with.x_TD[t * with.features + d]) - mean) * with.rstd_T[t];
      dweight = multiply_add(dy, xhat, dweight);
      dbias += dy;
    }
    float* const to = with.partial_BD + block * (centred ? 2 : 1) * with.padded + d;
    to[0] = dweight;
    if constexpr (centred) {
      to[with.padded] = dbias;
    }
  }
};

}  // namespace fourfold::kernels
