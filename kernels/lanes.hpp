// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Sums and maxima along a row in a fixed order that vectorises: element i goes to lane i % lanes,
/// the lanes are folded in halves at the end. The order depends on the length only, never on
/// alignment, instruction set or threads. (A compiler may not reorder a plain float sum, so it
/// would not vectorise.)
#pragma once

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace fourfold::kernels {

inline constexpr int lanes = 32;

template <class T, class Combine>
KOKKOS_FORCEINLINE_FUNCTION T fold_lanes(T (&partial)[lanes], const Combine& combine) {
  for (int half = lanes / 2; half > 0; half /= 2) {
    for (int lane = 0; lane < half; ++lane) {
      partial[lane] = combine(partial[lane], partial[lane + half]);
    }
  }
  return partial[0];
}

/// Combination of term(i) for i in [0, count), starting every lane at `start`.
template <class T, class Term, class Combine>
KOKKOS_FORCEINLINE_FUNCTION T lane_reduce(std::int64_t count, T start, const Term& term,
                                          const Combine& combine) {
  T partial[lanes];
  for (int lane = 0; lane < lanes; ++lane) {
    partial[lane] = start;
  }
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    for (int lane = 0; lane < lanes; ++lane) {
      partial[lane] = combine(partial[lane], term(i + lane));
    }
  }
  for (int lane = 0; i + lane < count; ++lane) {
    partial[lane] = combine(partial[lane], term(i + lane));
  }
  return fold_lanes(partial, combine);
}

/// Sum of term(i) for i in [0, count), in the type of `start`.
template <class T, class Term>
KOKKOS_FORCEINLINE_FUNCTION T lane_sum(std::int64_t count, T start, const Term& term) {
  return lane_reduce(count, start, term, [](T a, T b) { return a + b; });
}

/// Largest of term(i) for i in [0, count), at least `start`; NaN are passed over.
template <class Term>
KOKKOS_FORCEINLINE_FUNCTION float lane_max(std::int64_t count, float start, const Term& term) {
  return lane_reduce(count, start, term, [](float a, float b) { return b > a ? b : a; });
}

}  // namespace fourfold::kernels
