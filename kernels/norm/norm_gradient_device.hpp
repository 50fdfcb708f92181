// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The gradient of a row that a norm of norm_backward_device.kokkos.cpp has normalised.
#pragma once

#include "norm_backend.hpp"
#include "vectors/team_rows_device.hpp"

#include <cstdint>

namespace fourfold::kernels {

// What the norms' passes on a device share: which threads take a row.

inline constexpr int norm_warps = 8;

/// A row of at most `packs` packs, in the registers of a warp or of a team.
template <int packs, bool by_warp_, int team_warps_ = norm_warps>
struct NormRow {
  static constexpr bool by_warp = by_warp_;
  static constexpr int team_warps = team_warps_;
  using Threads = RowThreads<team_warps, by_warp>;
  static constexpr int threads = Threads::threads;
  static constexpr int packs_each = packs / threads;
};

/// Operands of a backward pass, and how its rows are cut.
/// @tparam whole_  as in_packs says of all operands
template <class T, bool whole_>
struct BlockedRows : NormBackwardOperands<T> {
  static constexpr bool whole = whole_;
  int padded;         ///< features rounded up to whole packs, of any T
  float* partial_BD;  ///< per block `padded` sums for dweight, then, where centred, for dbias
  std::int64_t block_rows;
};

/// Adds the sums of one pack: dy * weight, and that times x - mean.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION void add_pack(const PackWords& dy, const PackWords& x,
                                          const PackWords& weight, float mean, float (&sums)[2]) {
  float g_sum = 0;
  float g_centred_sum = 0;
  FOURFOLD_UNROLL
  for (int i = 0; i < pack_elements<T>; ++i) {
    const float g = element_of<T>(dy, i) * element_of<T>(weight, i);
    g_sum += g;
    g_centred_sum = multiply_add(g, element_of<T>(x, i) - mean, g_centred_sum);
  }
  sums[0] += g_sum;
  sums[1] += g_centred_sum;
}

template <bool centred, class Threads>
KOKKOS_FORCEINLINE_FUNCTION RowMeans row_means(Threads& threads, float (&sums)[2], float mean,
                                               float rstd, int features) {
  threads.sum(sums);
  const auto count = static_cast<float>(features);
  return {mean, rstd, centred ? sums[0] / count : 0.0F, sums[1] * rstd / count};
}

/// dx = before + rstd * (g - mean of g - xhat * mean of g * xhat) in the pack at `first`. Calls
/// each(i, dy, xhat) for its elements.
template <class T, bool whole, class Each>
KOKKOS_FORCEINLINE_FUNCTION void add_gradient(const BlockedRows<T, whole>& with, T* dx_row,
                                              int first, const PackWords& before,
                                              const PackWords& dy_pack, const PackWords& x_pack,
                                              const RowMeans& row, const Each& each) {
  const PackWords weight = load_part(with.weight_D, first, with.features, with.whole);
  PackOf<T> dx;
  FOURFOLD_UNROLL
  for (int i = 0; i < pack_elements<T>; ++i) {
    const float dy = element_of<T>(dy_pack, i);
    const float xhat = (element_of<T>(x_pack, i) - row.mean) * row.rstd;
    each(i, dy, xhat);
    const float g = multiply_add(dy, element_of<T>(weight, i), -row.g);
    dx[i] = multiply_add(row.rstd, multiply_add(-xhat, row.g_xhat, g), element_of<T>(before, i));
  }
  store_part(dx_row, first, with.features, with.whole, dx);
}

}  // namespace fourfold::kernels
