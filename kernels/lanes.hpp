// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Rows in chunks of `lanes` floats: how the row-wise bodies read, compute and write, so that loops
/// vectorise and results are the same bits wherever a row starts or a range is cut.
///
/// A chunk of f32 is used where it lies. A chunk of bf16 is widened into a buffer, even elements
/// first, then odd ones: two elements are one 32-bit word, so neither widening nor narrowing needs
/// a shuffle. The last elements of a row that fill no chunk are copied, in element order, with
/// zeros behind them. Bodies are loops over lanes that treat all lanes alike.
#pragma once

#include "storage.hpp"

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

namespace fourfold::kernels {

inline constexpr int lanes = 64;
using Lanes = float[lanes];

/// A chunk of elements as floats, in `buffer` if need be.
KOKKOS_FORCEINLINE_FUNCTION const float* widen(const float* from, Lanes& /*buffer*/) {
  return from;
}
KOKKOS_FORCEINLINE_FUNCTION const float* widen(const BFloat16* from, Lanes& buffer) {
#pragma omp simd
  for (int i = 0; i < lanes / 2; ++i) {
    std::uint32_t pair;
    std::memcpy(&pair, from + 2 * i, sizeof(pair));
    buffer[i] = float_from_bits(pair << 16);
    buffer[lanes / 2 + i] = float_from_bits(pair & 0xFFFF0000U);
  }
  return buffer;
}

/// The lane that element `i` of a whole chunk of T is in.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION int lane_of(int i) {
  return std::is_same_v<T, BFloat16> ? i / 2 + i % 2 * (lanes / 2) : i;
}

/// Where the results of a chunk go before narrow().
KOKKOS_FORCEINLINE_FUNCTION float* results(float* to, Lanes& /*buffer*/) {
  return to;
}
KOKKOS_FORCEINLINE_FUNCTION float* results(BFloat16* /*to*/, Lanes& buffer) {
  return buffer;
}

KOKKOS_FORCEINLINE_FUNCTION void narrow(float* /*to*/, const Lanes& /*buffer*/) {}
KOKKOS_FORCEINLINE_FUNCTION void narrow(BFloat16* to, const Lanes& buffer) {
#pragma omp simd
  for (int i = 0; i < lanes / 2; ++i) {
    const std::uint32_t pair =
        (bfloat16_word(buffer[i]) >> 16) | (bfloat16_word(buffer[lanes / 2 + i]) & 0xFFFF0000U);
    std::memcpy(static_cast<void*>(to + 2 * i), &pair, sizeof(pair));
  }
}

/// The same for the last `count` < lanes elements of a row.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION const float* widen_part(const T* from, int count, Lanes& buffer) {
  for (int i = 0; i < lanes; ++i) {
    buffer[i] = i < count ? to_float(from[i]) : 0.0F;
  }
  return buffer;
}
template <class T>
KOKKOS_FORCEINLINE_FUNCTION void narrow_part(T* to, int count, const Lanes& buffer) {
  for (int i = 0; i < count; ++i) {
    store(to[i], buffer[i]);
  }
}

template <class T, class Body, std::size_t... operand, class... From>
KOKKOS_FORCEINLINE_FUNCTION void for_chunks(std::index_sequence<operand...> /*operands*/,
                                            std::int64_t count, const Body& body, T* to,
                                            const From*... from) {
  Lanes result;
  Lanes buffer[sizeof...(From)];
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    body(results(to + i, result), widen(from + i, buffer[operand])...);
    narrow(to + i, result);
  }
  if (i < count) {
    const auto left = static_cast<int>(count - i);
    body(result, widen_part(from + i, left, buffer[operand])...);
    narrow_part(to + i, left, result);
  }
}

/// body(y, x...) for each chunk of `count` elements, with pointers to `lanes` floats; y is to be
/// written. `to` may be one of `from`, so may y be one of x.
template <class T, class Body, class... From>
KOKKOS_FORCEINLINE_FUNCTION void for_chunks(std::int64_t count, const Body& body, T* to,
                                            const From*... from) {
  for_chunks(std::index_sequence_for<From...>{}, count, body, to, from...);
}

template <class Body, std::size_t... operand, class... From>
KOKKOS_FORCEINLINE_FUNCTION void read_chunks(std::index_sequence<operand...> /*operands*/,
                                             std::int64_t count, const Body& body,
                                             const From*... from) {
  Lanes buffer[sizeof...(From)];
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    body(lanes, widen(from + i, buffer[operand])...);
  }
  if (i < count) {
    const auto left = static_cast<int>(count - i);
    body(left, widen_part(from + i, left, buffer[operand])...);
  }
}

/// body(valid, x...) for each chunk of `count` elements, of which the first `valid` lanes count.
template <class Body, class... From>
KOKKOS_FORCEINLINE_FUNCTION void read_chunks(std::int64_t count, const Body& body,
                                             const From*... from) {
  read_chunks(std::index_sequence_for<From...>{}, count, body, from...);
}

/// Folds the first 2 * half lanes in halves: one order, whatever the length.
template <int half = lanes / 2, class T, class Combine>
KOKKOS_FORCEINLINE_FUNCTION T fold(T (&lane)[lanes], const Combine& combine) {
#pragma omp simd
  for (int i = 0; i < half; ++i) {
    lane[i] = combine(lane[i], lane[half + i]);
  }
  if constexpr (half > 1) {
    return fold<half / 2>(lane, combine);
  } else {
    return lane[0];
  }
}
template <class T>
KOKKOS_FORCEINLINE_FUNCTION T fold_sum(T (&lane)[lanes]) {
  return fold(lane, [](T a, T b) { return a + b; });
}

/// Sum of term(x...) along a row. A plain float sum would not vectorise, for a compiler may not
/// reorder it.
template <class Term, class... From>
KOKKOS_FORCEINLINE_FUNCTION float sum_row(std::int64_t count, const Term& term,
                                          const From*... from) {
  Lanes sum = {};
  read_chunks(
      count,
      [&](int valid, const auto*... x) {
        if (valid == lanes) {
#pragma omp simd
          for (int i = 0; i < lanes; ++i) {
            sum[i] += term(x[i]...);
          }
        } else {
          for (int i = 0; i < valid; ++i) {
            sum[i] += term(x[i]...);
          }
        }
      },
      from...);
  return fold_sum(sum);
}

}  // namespace fourfold::kernels
