// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "vectors/for_each_pack.hpp"
#include "vectors/lanes.hpp"
#include "vectors/vector_math.hpp"

#include <fourfold/kernels/activation.hpp>

#include <type_traits>

namespace fourfold::kernels {
namespace {

constexpr float sqrt_8_over_pi = 1.5957691216057308F;
constexpr float log2_e = 1.4426950408889634F;
constexpr float gelu_cubic = 0.044715F;

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
[[maybe_unused]] KOKKOS_FORCEINLINE_FUNCTION float bounded(float y) {
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

// Activations are x / denominator(x), so their derivative is s (1 + (1 - s) x_slope(x)), s = 1 /
// denominator(x): x_slope(x) is x times the slope of what the sigmoid takes.

/// x sigmoid(2 u), for 0.5 (1 + tanh(u)) = sigmoid(2 u) = 1 / (1 + 2^-(2 u log2 e)).
struct GeluTanh {
  static constexpr const char* name[] = {"gelu", "gelu_bwd", "geglu", "geglu_bwd"};
  static constexpr float linear = sqrt_8_over_pi * log2_e;

  static KOKKOS_FORCEINLINE_FUNCTION float denominator(float x) {
    return 1.0F + fast_exp2(-x * (linear + linear * gelu_cubic * (x * x)));
  }
  template <int n>
  static KOKKOS_FORCEINLINE_FUNCTION void denominators(float (&result)[n], const float (&x)[n]) {
    float y[n];
#pragma omp simd
    for (int i = 0; i < n; ++i) {
      y[i] = x[i] * (linear + linear * gelu_cubic * (x[i] * x[i]));
    }
    one_plus_exp2_minus(result, y);
  }
  static KOKKOS_FORCEINLINE_FUNCTION float x_slope(float x) {
    constexpr float cubic = 3.0F * gelu_cubic * sqrt_8_over_pi;
    return x * (sqrt_8_over_pi + cubic * (x * x));
  }
};

/// x / (1 + e^-x). The product rounds, so e^-x is off by up to 2e-7 + 8e-8 |x| of itself: a part of
/// the result only where x is far below zero.
struct Silu {
  static constexpr const char* name[] = {"silu", "silu_bwd", "swiglu", "swiglu_bwd"};

  static KOKKOS_FORCEINLINE_FUNCTION float denominator(float x) {
    return 1.0F + fast_exp2(-x * log2_e);
  }
  template <int n>
  static KOKKOS_FORCEINLINE_FUNCTION void denominators(float (&result)[n], const float (&x)[n]) {
    float y[n];
#pragma omp simd
    for (int i = 0; i < n; ++i) {
      y[i] = x[i] * log2_e;
    }
    one_plus_exp2_minus(result, y);
  }
  static KOKKOS_FORCEINLINE_FUNCTION float x_slope(float x) {
    return x;
  }
};

/// Replaces g and up by their gradients.
template <class A, int n>
KOKKOS_FORCEINLINE_FUNCTION void differentiate_gated(const float (&dy)[n], float (&g)[n],
                                                     float (&up)[n]) {
  float d[n];
  A::denominators(d, g);
#pragma omp simd
  for (int i = 0; i < n; ++i) {
    const float s = 1.0F / d[i];
    const float dy_s = dy[i] * s;
    const float dgate = dy_s * up[i] * (1.0F + A::x_slope(g[i]) * (1.0F - s));
    up[i] = dy_s * g[i];
    g[i] = dgate;
  }
}

template <class T, class A>
struct Plain {
  const T* x;
  T* y;

  KOKKOS_FUNCTION void operator()(std::int64_t begin, std::int64_t end) const {
    for_chunks<chunk<T>>(
        end - begin, 0,
        [](Chunk<T>& y_chunk, const Chunk<T>& v) {
          Chunk<T> d;
          A::denominators(d, v);
#pragma omp simd
          for (int i = 0; i < chunk<T>; ++i) {
            y_chunk[i] = v[i] / d[i];
          }
        },
        y + begin, x + begin);
  }

  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t first, Count<n> /*count*/) const {
    float v[n];
    load<n>(x + first, v);
    for (float& each : v) {
      each = fast_divide(each, A::denominator(each));
    }
    save<n>(y + first, v);
  }
};

template <class T, class A>
struct PlainBackward {
  const T* dy;
  const T* x;
  T* dx;

  KOKKOS_FUNCTION void operator()(std::int64_t begin, std::int64_t end) const {
    for_chunks<chunk<T>>(
        end - begin, 0,
        [](Chunk<T>& dx_chunk, const Chunk<T>& dy_chunk, const Chunk<T>& v) {
          Chunk<T> d;
          A::denominators(d, v);
#pragma omp simd
          for (int i = 0; i < chunk<T>; ++i) {
            const float s = 1.0F / d[i];
            dx_chunk[i] = dy_chunk[i] * s * (1.0F + (1.0F - s) * A::x_slope(v[i]));
          }
        },
        dx + begin, dy + begin, x + begin);
  }

  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t first, Count<n> /*count*/) const {
    float v[n];
    float gradient[n];
    load<n>(x + first, v);
    load<n>(dy + first, gradient);
    for (int i = 0; i < n; ++i) {
      const float s = fast_divide(1.0F, A::denominator(v[i]));
      gradient[i] *= s * (1.0F + (1.0F - s) * A::x_slope(v[i]));
    }
    save<n>(dx + first, gradient);
  }
};

template <class T, class A>
struct Gated {
  const T* gate_up_T2F;
  T* y_TF;
  std::int64_t features;
  std::int64_t rows;

  KOKKOS_FUNCTION void operator()(std::int64_t t) const {
    const T* gate = gate_up_T2F + 2 * t * features;
    for_chunks<chunk<T>>(
        features, t + 1 < rows ? 2 * features : 0,
        [](Chunk<T>& y, const Chunk<T>& g, const Chunk<T>& up) {
          Chunk<T> d;
          A::denominators(d, g);
#pragma omp simd
          for (int i = 0; i < chunk<T>; ++i) {
            y[i] = g[i] * up[i] / d[i];
          }
        },
        y_TF + t * features, gate, gate + features);
  }

  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t t, std::int64_t f,
                                              Count<n> /*count*/) const {
    const T* const from = gate_up_T2F + 2 * t * features + f;
    float gate[n];
    float up[n];
    load<n>(from, gate);
    load<n>(from + features, up);
    for (int i = 0; i < n; ++i) {
      up[i] = fast_divide(gate[i] * up[i], A::denominator(gate[i]));
    }
    save<n>(y_TF + t * features + f, up);
  }
};

template <class T, class A>
struct GatedBackward {
  const T* dy_TF;
  const T* gate_up_T2F;
  T* dgate_up_T2F;
  std::int64_t features;
  std::int64_t rows;

  KOKKOS_FUNCTION void operator()(std::int64_t t) const {
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
      differentiate_gated<A>(dy_chunk, gate_chunk, up_chunk);
      narrow(dgate + f, gate_chunk);
      narrow(dup + f, up_chunk);
    }
    if (f < features) {
      const std::int64_t left = features - f;
      widen_part(dy + f, left, dy_chunk);
      widen_part(gate + f, left, gate_chunk);
      widen_part(up + f, left, up_chunk);
      differentiate_gated<A>(dy_chunk, gate_chunk, up_chunk);
      narrow_part(dgate + f, left, gate_chunk);
      narrow_part(dup + f, left, up_chunk);
    }
  }

  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t t, std::int64_t f,
                                              Count<n> /*count*/) const {
    const std::int64_t first = 2 * t * features + f;
    float dy[n];
    float gate[n];
    float up[n];
    load<n>(dy_TF + t * features + f, dy);
    load<n>(gate_up_T2F + first, gate);
    load<n>(gate_up_T2F + first + features, up);
    for (int i = 0; i < n; ++i) {
      const float s = fast_divide(1.0F, A::denominator(gate[i]));
      const float dy_s = dy[i] * s;
      const float dgate = dy_s * up[i] * (1.0F + A::x_slope(gate[i]) * (1.0F - s));
      up[i] = dy_s * gate[i];
      gate[i] = dgate;
    }
    save<n>(dgate_up_T2F + first, gate);
    save<n>(dgate_up_T2F + first + features, up);
  }
};

template <class T>
struct Add {
  const T* a;
  const T* b;
  T* y;

  KOKKOS_FUNCTION void operator()(std::int64_t begin, std::int64_t end) const {
    map(
        NothingAhead{}, end - begin, [](float u, float v) { return u + v; }, y + begin, a + begin,
        b + begin);
  }

  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t first, Count<n> /*count*/) const {
    float u[n];
    float v[n];
    load<n>(a + first, u);
    load<n>(b + first, v);
    for (int i = 0; i < n; ++i) {
      u[i] += v[i];
    }
    save<n>(y + first, u);
  }
};

/// Calls use(T of the storage, A of the activation).
template <class Use>
void with_kind(DType dtype, Activation activation, const Use& use) {
  with_storage(dtype, [&]<class T>(T storage) {
    switch (activation) {
      case Activation::gelu_tanh:
        return use(storage, GeluTanh{});
      case Activation::silu:
        return use(storage, Silu{});
    }
  });
}

}  // namespace

void activate(Activation activation, ConstTensorView x, TensorView y, device::StreamRef stream) {
  FOURFOLD_EXPECT(x.elements() == y.elements());
  with_kind(x.dtype(), activation, [&]<class T, class A>(T, A) {
    constexpr int n = pack_elements<T>;
    const Plain<T, A> body{x.as<T>(), y.as<T>()};
    for_each_pack<n>(A::name[0], x.elements(), at_packs<n>(body.x, body.y), stream, body);
  });
}

void activate_backward(Activation activation, ConstTensorView dy, ConstTensorView x, TensorView dx,
                       device::StreamRef stream) {
  FOURFOLD_EXPECT(x.elements() == dy.elements() && x.elements() == dx.elements());
  with_kind(x.dtype(), activation, [&]<class T, class A>(T, A) {
    constexpr int n = pack_elements<T>;
    const PlainBackward<T, A> body{dy.as<T>(), x.as<T>(), dx.as<T>()};
    for_each_pack<n>(A::name[1], x.elements(), at_packs<n>(body.dy, body.x, body.dx), stream, body);
  });
}

void activate_gated(Activation activation, ConstTensorView gate_up_T2F, TensorView y_TF,
                    device::StreamRef stream) {
  FOURFOLD_EXPECT(y_TF.shape().rank() == 2 && gate_up_T2F.elements() == 2 * y_TF.elements());
  with_kind(y_TF.dtype(), activation, [&]<class T, class A>(T, A) {
    constexpr int n = pack_elements<T>;
    const Gated<T, A> body{gate_up_T2F.as<T>(), y_TF.as<T>(), y_TF.dim(1), y_TF.dim(0)};
    for_each_pack_of_rows<n>(A::name[2], body.rows, body.features,
                             at_packs<n>(body.gate_up_T2F, body.y_TF), stream, body);
  });
}

void activate_gated_backward(Activation activation, ConstTensorView dy_TF,
                             ConstTensorView gate_up_T2F, TensorView dgate_up_T2F,
                             device::StreamRef stream) {
  FOURFOLD_EXPECT(dy_TF.shape().rank() == 2 && gate_up_T2F.elements() == 2 * dy_TF.elements());
  FOURFOLD_EXPECT(dgate_up_T2F.elements() == gate_up_T2F.elements());
  with_kind(dy_TF.dtype(), activation, [&]<class T, class A>(T, A) {
    constexpr int n = pack_elements<T>;
    const GatedBackward<T, A> body{dy_TF.as<T>(), gate_up_T2F.as<T>(), dgate_up_T2F.as<T>(),
                                   dy_TF.dim(1), dy_TF.dim(0)};
    for_each_pack_of_rows<n>(A::name[3], body.rows, body.features,
                             at_packs<n>(body.dy_TF, body.gate_up_T2F, body.dgate_up_T2F), stream,
                             body);
  });
}

void add(ConstTensorView a, ConstTensorView b, TensorView y, device::StreamRef stream) {
  FOURFOLD_EXPECT(a.elements() == y.elements() && b.elements() == y.elements());
  with_storage(y.dtype(), [&]<class T>(T) {
    constexpr int n = pack_elements<T>;
    const Add<T> body{a.as<T>(), b.as<T>(), y.as<T>()};
    for_each_pack<n>("add", y.elements(), at_packs<n>(body.a, body.b, body.y), stream, body);
  });
}

}  // namespace fourfold::kernels
