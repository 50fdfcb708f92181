// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Rows in chunks of `lanes` elements: how the row-wise bodies read, compute and write, so that
/// loops vectorise and results are the same bits wherever a row starts or a range is cut.
///
/// Short formulas are functions of the elements at one place (map, sum_row); long ones take a whole
/// chunk through one step after the other (for_chunks). bf16 is taken in pairs: two elements are
/// one 32-bit word, so neither widening nor narrowing needs a shuffle, and nothing but the words
/// themselves is loaded or stored. f16 is converted in runs (float16.hpp). A chunk is so short that
/// GCC unrolls all loops over it and keeps its numbers in registers, and long enough to keep the
/// units busy.
#pragma once

#include "storage.hpp"

#include <Kokkos_Core.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

namespace fourfold::kernels {

inline constexpr int lanes = 32;
using Lanes = float[lanes];

/// How many elements ahead a body asks for memory.
inline constexpr std::int64_t prefetch_distance = 192;

/// The element to ask for at element i of a row of `count`, when the next row starts `next`
/// elements after this one (0 without a next row).
KOKKOS_FORCEINLINE_FUNCTION std::int64_t element_ahead(std::int64_t i, std::int64_t count,
                                                       std::int64_t next) {
  const std::int64_t later = i + prefetch_distance;
  const std::int64_t wrapped = count < prefetch_distance ? i : later - count + next;
  return later < count ? later : wrapped;
}

/// Sets all lanes. (An initialiser would be a call of memset, or worse, for each row.)
template <class T>
KOKKOS_FORCEINLINE_FUNCTION void fill(T (&lane)[lanes], T value) {
#pragma omp simd
  for (int i = 0; i < lanes; ++i) {
    lane[i] = value;
  }
}

/// Two neighbours in memory, the first one in the lower half.
KOKKOS_FORCEINLINE_FUNCTION std::uint32_t load_pair(const BFloat16* x) {
  std::uint32_t pair;
  std::memcpy(&pair, x, sizeof(pair));
  return pair;
}
KOKKOS_FORCEINLINE_FUNCTION float first_of(std::uint32_t pair) {
  return float_from_bits(pair << 16);
}
KOKKOS_FORCEINLINE_FUNCTION float second_of(std::uint32_t pair) {
  return float_from_bits(pair & 0xFFFF0000U);
}
KOKKOS_FORCEINLINE_FUNCTION void store_pair(BFloat16* to, float first, float second) {
  const std::uint32_t pair = (rounded_result(first) >> 16) | (rounded_result(second) & 0xFFFF0000U);
  std::memcpy(static_cast<void*>(to), &pair, sizeof(pair));
}

/// Starts to bring a chunk that will be read soon into the cache: memory is idle otherwise while a
/// row that is there already is read again, and while long formulas are computed.
template <int n = lanes, class T>
KOKKOS_FORCEINLINE_FUNCTION void prefetch_chunk([[maybe_unused]] const T* chunk) {
#if !defined(__CUDA_ARCH__) && !defined(__HIP_DEVICE_COMPILE__)
  constexpr int line = 64 / sizeof(T);
  for (int i = 0; i < n; i += line) {
    __builtin_prefetch(chunk + i);
  }
#endif
}

/// A chunk of elements as floats, in the order of lanes: f32 and f16 in order; the first elements
/// of all pairs of bf16, then the second ones.
template <int n>
KOKKOS_FORCEINLINE_FUNCTION void widen(const float* from, float (&x)[n]) {
#pragma omp simd
  for (int i = 0; i < n; ++i) {
    x[i] = from[i];
  }
}
template <int n>
KOKKOS_FORCEINLINE_FUNCTION void widen(const BFloat16* from, float (&x)[n]) {
#pragma omp simd
  for (int i = 0; i < n / 2; ++i) {
    x[i] = first_of(load_pair(from + 2 * i));
    x[n / 2 + i] = second_of(load_pair(from + 2 * i));
  }
}
template <int n>
KOKKOS_FORCEINLINE_FUNCTION void widen(const Float16* from, float (&x)[n]) {
  for (int i = 0; i < n; i += float16_run) {
    widen_run(from + i, x + i);
  }
}
template <int n>
KOKKOS_FORCEINLINE_FUNCTION void narrow(float* to, const float (&y)[n]) {
#pragma omp simd
  for (int i = 0; i < n; ++i) {
    to[i] = y[i];
  }
}
template <int n>
KOKKOS_FORCEINLINE_FUNCTION void narrow(BFloat16* to, const float (&y)[n]) {
#pragma omp simd
  for (int i = 0; i < n / 2; ++i) {
    store_pair(to + 2 * i, y[i], y[n / 2 + i]);
  }
}
template <int n>
KOKKOS_FORCEINLINE_FUNCTION void narrow(Float16* to, const float (&y)[n]) {
  for (int i = 0; i < n; i += float16_run) {
    narrow_run(y + i, to + i);
  }
}

/// The same for the last `count` < n elements of a row, in the order of elements, with zeros
/// after them.
template <class T, int n>
KOKKOS_FORCEINLINE_FUNCTION void widen_part(const T* from, std::int64_t count, float (&x)[n]) {
  for (int i = 0; i < n; ++i) {
    x[i] = i < count ? to_float(from[i]) : 0.0F;
  }
}
template <class T, int n>
KOKKOS_FORCEINLINE_FUNCTION void narrow_part(T* to, std::int64_t count, const float (&y)[n]) {
  for (int i = 0; i < count; ++i) {
    store(to[i], y[i]);
  }
}

/// Takes the elements of one chunk of f16 as floats: body(lane, x...).
template <class Body, std::size_t... operand, class... From>
KOKKOS_FORCEINLINE_FUNCTION void read_widened(std::index_sequence<operand...> /*operands*/,
                                              const Body& body, const From*... from) {
  Lanes x[sizeof...(From)];
  (widen(from, x[operand]), ...);
#pragma omp simd
  for (int i = 0; i < lanes; ++i) {
    body(i, x[operand][i]...);
  }
}

/// body(lane, x...) for the elements of one chunk.
template <class Body, class... From>
KOKKOS_FORCEINLINE_FUNCTION void read_chunk(const Body& body, const From*... from) {
  if constexpr ((std::is_same_v<From, float> && ...)) {
#pragma omp simd
    for (int i = 0; i < lanes; ++i) {
      body(i, from[i]...);
    }
  } else if constexpr ((std::is_same_v<From, Float16> && ...)) {
    read_widened(std::index_sequence_for<From...>{}, body, from...);
  } else {
#pragma omp simd
    for (int i = 0; i < lanes / 2; ++i) {
      body(i, first_of(load_pair(from + 2 * i))...);
      body(lanes / 2 + i, second_of(load_pair(from + 2 * i))...);
    }
  }
}

/// to[i] = f(lane, from[i]...) for one chunk. `to` may be one of `from`.
template <class F, class... From>
KOKKOS_FORCEINLINE_FUNCTION void map_chunk(const F& f, float* to, const From*... from) {
#pragma omp simd
  for (int i = 0; i < lanes; ++i) {
    to[i] = f(i, from[i]...);
  }
}
template <class F, class... From>
KOKKOS_FORCEINLINE_FUNCTION void map_chunk(const F& f, BFloat16* to, const From*... from) {
#pragma omp simd
  for (int i = 0; i < lanes / 2; ++i) {
    const float first = f(i, first_of(load_pair(from + 2 * i))...);
    const float second = f(lanes / 2 + i, second_of(load_pair(from + 2 * i))...);
    store_pair(to + 2 * i, first, second);
  }
}
template <class F, class... From>
KOKKOS_FORCEINLINE_FUNCTION void map_chunk(const F& f, Float16* to, const From*... from) {
  Lanes y;
  read_chunk([&](int lane, auto... x) { y[lane] = f(lane, x...); }, from...);
  narrow(to, y);
}

/// What a pass does at the start of each chunk when there is nothing to prefetch.
struct NothingAhead {
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t /*i*/) const {}
};

/// to[i] = f(from[i]...) for `count` elements. `to` may be one of `from`. Calls ahead(i) at the
/// start of each whole chunk.
template <class Ahead, class T, class F, class... From>
KOKKOS_FORCEINLINE_FUNCTION void map(const Ahead& ahead, std::int64_t count, const F& f, T* to,
                                     const From*... from) {
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    ahead(i);
    map_chunk([&f](int /*lane*/, auto... x) { return f(x...); }, to + i, from + i...);
  }
  for (; i < count; ++i) {
    store(to[i], f(to_float(from[i])...));
  }
}

template <int n, class T, class Body, std::size_t... operand, class... From>
KOKKOS_FORCEINLINE_FUNCTION void for_chunks(std::index_sequence<operand...> /*operands*/,
                                            std::int64_t count, std::int64_t next, const Body& body,
                                            T* to, const From*... from) {
  float y[n];
  float x[sizeof...(From)][n];
  std::int64_t i = 0;
  for (; i + n <= count; i += n) {
    const std::int64_t later = element_ahead(i, count, next);
    (prefetch_chunk<n>(from + later), ...);
    (widen(from + i, x[operand]), ...);
    body(y, x[operand]...);
    narrow(to + i, y);
  }
  if (i < count) {
    (widen_part(from + i, count - i, x[operand]), ...);
    body(y, x[operand]...);
    narrow_part(to + i, count - i, y);
  }
}

/// body(y, x...) for each chunk of n among `count` elements; y is to be written. `to` may be one of
/// `from`. `next`: as in element_ahead, for all of `from`.
template <int n = lanes, class T, class Body, class... From>
KOKKOS_FORCEINLINE_FUNCTION void for_chunks(std::int64_t count, std::int64_t next, const Body& body,
                                            T* to, const From*... from) {
  for_chunks<n>(std::index_sequence_for<From...>{}, count, next, body, to, from...);
}

/// body(valid, x) for each chunk of `count` elements, of which the first `valid` lanes count. Calls
/// ahead(i) at the start of each whole chunk.
template <class Ahead, class T, class Body>
KOKKOS_FORCEINLINE_FUNCTION void read_chunks(const Ahead& ahead, std::int64_t count,
                                             const Body& body, const T* from) {
  Lanes x;
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    ahead(i);
    widen(from + i, x);
    body(lanes, x);
  }
  if (i < count) {
    widen_part(from + i, count - i, x);
    body(count - i, x);
  }
}

/// The lane that element `i` of a whole chunk of T is in.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION int lane_of(int i) {
  return std::is_same_v<T, BFloat16> ? i / 2 + i % 2 * (lanes / 2) : i;
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

/// body(lane, x...) for each element of a row. Calls ahead(i) at the start of each whole chunk.
template <class Ahead, class Body, class... From>
KOKKOS_FORCEINLINE_FUNCTION void read_row(const Ahead& ahead, std::int64_t count, const Body& body,
                                          const From*... from) {
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    ahead(i);
    read_chunk(body, from + i...);
  }
  for (int lane = 0; i < count; ++i, ++lane) {
    body(lane, to_float(from[i])...);
  }
}

/// Sum of term(x...) along a row. A plain float sum would not vectorise, for a compiler may not
/// reorder it.
template <class Ahead, class Term, class... From>
KOKKOS_FORCEINLINE_FUNCTION float sum_row(const Ahead& ahead, std::int64_t count, const Term& term,
                                          const From*... from) {
  Lanes sum;
  fill(sum, 0.0F);
  read_row(
      ahead, count, [&](int lane, auto... x) { sum[lane] += term(x...); }, from...);
  return fold_sum(sum);
}

}  // namespace fourfold::kernels
