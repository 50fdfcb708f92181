// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "activation_backend.hpp"
#include "runtime/launch.hpp"
#include "vectors/lanes.hpp"
#include "vectors/storage.hpp"
#include "vectors/vector_math.hpp"

#include <Kokkos_Core.hpp>

#include <type_traits>

namespace fourfold::kernels {
namespace {

/// How many elements go through the steps below together: the long chain of
/// operations of one element leaves the units idle, the chains of a chunk in
/// turns do not. bf16, which memory does not hold up, gains by longer ones:
/// what does not fit the registers comes from the first-level cache.
template <class T>
constexpr int chunk = std::is_same_v<T, float> ? lanes : 2 * lanes;
template <class T>
using Chunk = float[chunk<T>];

/// y between -128 and 127, by integers, for which a minimum is one instruction.
/// A positive NaN becomes 127.
KOKKOS_FORCEINLINE_FUNCTION float bounded(float y) {
  // The bits of negative numbers, unsigned, grow downwards from those of all
  // positive ones.
  const std::uint32_t bits = float_bits(y);
  const std::int32_t raised = bits < 0xC3000000U ? bits : 0xC3000000U;
  return float_from_bits(raised < 0x42FE0000 ? raised : 0x42FE0000);
}

/// 1 + 2^-y, anything for NaN. Overwrites y.
template <int n>
KOKKOS_FORCEINLINE_FUNCTION void one_plus_exp2_minus(float (&result)[n], float (&y)[n]) {
  // Adding 1.5 * 2^23 rounds to an integer in the low bits; 127 more is the
  // bias of an exponent.
  constexpr float shift = 12582912.0F + 127.0F;
  float shifted[n];
#pragma omp simd
  for (int i = 0; i < n; ++i) {
    y[i] = bounded(y[i]);
  }
#pragma omp simd
  for (int i = 0; i < n; ++i) {
    shifted[i] = shift - y[i];
    y[i] = (shift - shifted[i]) - y[i];
  }
#pragma omp simd
  for (int i = 0; i < n; ++i) {
    y[i] = vector_exp2_reduced(y[i]);
  }
#pragma omp simd
  for (int i = 0; i < n; ++i) {
    result[i] = 1.0F + y[i] * float_from_bits(float_bits(shifted[i]) << 23);
  }
}

constexpr float sqrt_8_over_pi = 1.5957691216057308F;
constexpr float log2_e = 1.4426950408889634F;
constexpr float gelu_cubic = 0.044715F;

/// gelu(x) = x sigmoid(2 u), for 0.5 (1 + tanh(u)) = sigmoid(2 u) = 1 / (1 +
/// 2^-(2 u log2 e)).
template <int n>
KOKKOS_FORCEINLINE_FUNCTION void gelu_denominators(float (&result)[n], const float (&x)[n]) {
  float y[n];
#pragma omp simd
  for (int i = 0; i < n; ++i) {
    constexpr float linear = sqrt_8_over_pi * log2_e;
    y[i] = x[i] * (linear + linear * gelu_cubic * (x[i] * x[i]));
  }
  one_plus_exp2_minus(result, y);
}

/// 1 + e^-x. The product rounds, so e^-x is off by up to 2e-7 + 8e-8 |x| of
/// itself: a part of the result only where x is far below zero.
template <int n>
KOKKOS_FORCEINLINE_FUNCTION void swish_denominators(float (&result)[n], const float (&x)[n]) {
  float y[n];
#pragma omp simd
  for (int i = 0; i < n; ++i) {
    y[i] = x[i] * log2_e;
  }
  one_plus_exp2_minus(result, y);
}

/// Replaces g and up by their gradients.
template <int n>
KOKKOS_FORCEINLINE_FUNCTION void differentiate_swiglu(const float (&dy)[n], float (&g)[n],
                                                      float (&up)[n]) {
  float d[n];
  swish_denominators(d, g);
#pragma omp simd
  for (int i = 0; i < n; ++i) {
    const float s = 1.0F / d[i];
    const float dy_s = dy[i] * s;
    const float dgate = dy_s * up[i] * (1.0F + g[i] * (1.0F - s));
    up[i] = dy_s * g[i];
    g[i] = dgate;
  }
}

}  // namespace

template <class T>
void ActivationOperands<T>::gelu(const T* x, T* y, std::int64_t elements,
                                 device::StreamRef stream) {
  for_each_block("gelu", elements, stream, [=](std::int64_t begin, std::int64_t end) {
    for_chunks<chunk<T>>(
        end - begin, 0,
        [](Chunk<T>& y_chunk, const Chunk<T>& v) {
          Chunk<T> d;
          gelu_denominators(d, v);
#pragma omp simd
          for (int i = 0; i < chunk<T>; ++i) {
            y_chunk[i] = v[i] / d[i];
          }
        },
        y + begin, x + begin);
  });
}

template <class T>
void ActivationOperands<T>::gelu_backward(const T* dy, const T* x, T* dx, std::int64_t elements,
                                          device::StreamRef stream) {
  for_each_block("gelu_bwd", elements, stream, [=](std::int64_t begin, std::int64_t end) {
    for_chunks<chunk<T>>(
        end - begin, 0,
        [](Chunk<T>& dx_chunk, const Chunk<T>& dy_chunk, const Chunk<T>& v) {
          Chunk<T> d;
          gelu_denominators(d, v);
#pragma omp simd
          for (int i = 0; i < chunk<T>; ++i) {
            const float s = 1.0F / d[i];
            constexpr float cubic = 3.0F * gelu_cubic * sqrt_8_over_pi;
            const float x_slope = v[i] * (sqrt_8_over_pi + cubic * (v[i] * v[i]));
            dx_chunk[i] = dy_chunk[i] * s * (1.0F + (1.0F - s) * x_slope);
          }
        },
        dx + begin, dy + begin, x + begin);
  });
}

template <class T>
void ActivationOperands<T>::swiglu(const T* gate_up_T2F, T* y_TF, std::int64_t rows,
                                   std::int64_t features, device::StreamRef stream) {
  for_each("swiglu", rows, stream, [=](std::int64_t t) {
    const T* gate = gate_up_T2F + 2 * t * features;
    for_chunks<chunk<T>>(
        features, t + 1 < rows ? 2 * features : 0,
        [](Chunk<T>& y, const Chunk<T>& g, const Chunk<T>& up) {
          Chunk<T> d;
          swish_denominators(d, g);
#pragma omp simd
          for (int i = 0; i < chunk<T>; ++i) {
            y[i] = g[i] * up[i] / d[i];
          }
        },
        y_TF + t * features, gate, gate + features);
  });
}

template <class T>
void ActivationOperands<T>::swiglu_backward(const T* dy_TF, const T* gate_up_T2F, T* dgate_up_T2F,
                                            std::int64_t rows, std::int64_t features,
                                            device::StreamRef stream) {
  for_each("swiglu_bwd", rows, stream, [=](std::int64_t t) {
    // Two results, so the chunks are taken by hand.
    const T* dy = dy_TF + t * features;
    const T* gate = gate_up_T2F + 2 * t * features;
    const T* up = gate + features;
    T* dgate = dgate_up_T2F + 2 * t * features;
    T* dup = dgate + features;
    const std::int64_t next = t + 1 < rows ? features : 0;
    Chunk<T> dy_chunk;
    Chunk<T> gate_chunk;
    Chunk<T> up_chunk;
    std::int64_t f = 0;
    for (; f + chunk<T> <= features; f += chunk<T>) {
      prefetch_chunk<chunk<T>>(dy + element_ahead(f, features, next));
      prefetch_chunk<chunk<T>>(gate + element_ahead(f, features, 2 * next));
      prefetch_chunk<chunk<T>>(up + element_ahead(f, features, 2 * next));
      widen(dy + f, dy_chunk);
      widen(gate + f, gate_chunk);
      widen(up + f, up_chunk);
      differentiate_swiglu(dy_chunk, gate_chunk, up_chunk);
      narrow(dgate + f, gate_chunk);
      narrow(dup + f, up_chunk);
    }
    if (f < features) {
      const std::int64_t left = features - f;
      widen_part(dy + f, left, dy_chunk);
      widen_part(gate + f, left, gate_chunk);
      widen_part(up + f, left, up_chunk);
      differentiate_swiglu(dy_chunk, gate_chunk, up_chunk);
      narrow_part(dgate + f, left, gate_chunk);
      narrow_part(dup + f, left, up_chunk);
    }
  });
}

template <class T>
void ActivationOperands<T>::add(const T* a, const T* b, T* y, std::int64_t elements,
                                device::StreamRef stream) {
  for_each_block("add", elements, stream, [=](std::int64_t begin, std::int64_t end) {
    map(
        NothingAhead{}, end - begin, [](float u, float v) { return u + v; }, y + begin, a + begin,
        b + begin);
  });
}

template struct ActivationOperands<float>;
template struct ActivationOperands<BFloat16>;
template struct ActivationOperands<Float16>;

}  // namespace fourfold::kernels
