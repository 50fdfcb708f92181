// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "lanes.hpp"
#include "launch.hpp"
#include "storage.hpp"
#include "vector_math.hpp"

#include <fourfold/kernels/activation.hpp>

#include <Kokkos_Core.hpp>

namespace fourfold::kernels {
namespace {

// The loops below are cut into short ones over a chunk: the long chain of operations of one element
// leaves the units idle, many short ones do not.

/// e^-|x|.
KOKKOS_FORCEINLINE_FUNCTION void exps_of_minus_magnitude(float* e, const float* x) {
#pragma omp simd
  for (int i = 0; i < lanes; ++i) {
    e[i] = vector_exp_minus(float_from_bits(float_bits(x[i]) & 0x7FFFFFFFU));
  }
}

/// 1 / (1 + e^-x), given e = e^-|x|: nothing overflows, and small results are accurate.
KOKKOS_FORCEINLINE_FUNCTION float sigmoid(float x, float e) {
  return (x < 0.0F ? e : 1.0F) / (1.0F + e);
}

constexpr float sqrt_8_over_pi = 1.5957691216057308F;
constexpr float gelu_cubic = 0.044715F;

/// gelu(x) = x sigmoid(2 u), for 0.5 (1 + tanh(u)) = sigmoid(2 u). 2 u has the sign of x.
KOKKOS_FORCEINLINE_FUNCTION float gelu_argument(float x) {
  return sqrt_8_over_pi * x * (1.0F + gelu_cubic * x * x);
}

KOKKOS_FORCEINLINE_FUNCTION void gelu_exps(float* e, const float* x) {
  Lanes argument;
#pragma omp simd
  for (int i = 0; i < lanes; ++i) {
    argument[i] = gelu_argument(x[i]);
  }
  exps_of_minus_magnitude(e, argument);
}

template <class T>
struct Gelu {
  const T* x;
  T* y;
  KOKKOS_FUNCTION void operator()(std::int64_t begin, std::int64_t end) const {
    for_chunks(
        end - begin,
        [](float* y_chunk, const float* v) {
          Lanes e;
          gelu_exps(e, v);
#pragma omp simd
          for (int i = 0; i < lanes; ++i) {
            y_chunk[i] = v[i] * sigmoid(v[i], e[i]);
          }
        },
        y + begin, x + begin);
  }
};

template <class T>
struct GeluBackward {
  const T* dy;
  const T* x;
  T* dx;
  KOKKOS_FUNCTION void operator()(std::int64_t begin, std::int64_t end) const {
    for_chunks(
        end - begin,
        [](float* dx_chunk, const float* dy_chunk, const float* v) {
          Lanes gate;
          gelu_exps(gate, v);
#pragma omp simd
          for (int i = 0; i < lanes; ++i) {
            gate[i] = sigmoid(v[i], gate[i]);
          }
#pragma omp simd
          for (int i = 0; i < lanes; ++i) {
            const float slope = sqrt_8_over_pi * (1.0F + 3.0F * gelu_cubic * v[i] * v[i]);
            dx_chunk[i] = dy_chunk[i] * (gate[i] + v[i] * gate[i] * (1.0F - gate[i]) * slope);
          }
        },
        dx + begin, dy + begin, x + begin);
  }
};

template <class T>
struct Swiglu {
  const T* gate_up_T2F;
  T* y_TF;
  std::int64_t features;
  KOKKOS_FUNCTION void operator()(std::int64_t t) const {
    const T* gate = gate_up_T2F + 2 * t * features;
    for_chunks(
        features,
        [](float* y, const float* g, const float* up) {
          Lanes e;
          exps_of_minus_magnitude(e, g);
#pragma omp simd
          for (int i = 0; i < lanes; ++i) {
            y[i] = g[i] * sigmoid(g[i], e[i]) * up[i];
          }
        },
        y_TF + t * features, gate, gate + features);
  }
};

/// Two results, so the chunks are taken by hand.
template <class T>
struct SwigluBackward {
  const T* dy_TF;
  const T* gate_up_T2F;
  T* dgate_up_T2F;
  std::int64_t features;
  KOKKOS_FUNCTION void operator()(std::int64_t t) const {
    const T* dy = dy_TF + t * features;
    const T* gate = gate_up_T2F + 2 * t * features;
    const T* up = gate + features;
    T* dgate = dgate_up_T2F + 2 * t * features;
    T* dup = dgate + features;
    Lanes dy_buffer;
    Lanes gate_buffer;
    Lanes up_buffer;
    Lanes dgate_buffer;
    Lanes dup_buffer;
    std::int64_t f = 0;
    for (; f + lanes <= features; f += lanes) {
      differentiate(results(dgate + f, dgate_buffer), results(dup + f, dup_buffer),
                    widen(dy + f, dy_buffer), widen(gate + f, gate_buffer),
                    widen(up + f, up_buffer));
      narrow(dgate + f, dgate_buffer);
      narrow(dup + f, dup_buffer);
    }
    if (f < features) {
      const auto left = static_cast<int>(features - f);
      differentiate(dgate_buffer, dup_buffer, widen_part(dy + f, left, dy_buffer),
                    widen_part(gate + f, left, gate_buffer), widen_part(up + f, left, up_buffer));
      narrow_part(dgate + f, left, dgate_buffer);
      narrow_part(dup + f, left, dup_buffer);
    }
  }

  KOKKOS_FORCEINLINE_FUNCTION static void differentiate(float* dgate, float* dup, const float* dy,
                                                        const float* g, const float* up) {
    Lanes s;
    exps_of_minus_magnitude(s, g);
#pragma omp simd
    for (int i = 0; i < lanes; ++i) {
      s[i] = sigmoid(g[i], s[i]);
    }
#pragma omp simd
    for (int i = 0; i < lanes; ++i) {
      const float dy_s = dy[i] * s[i];
      const float dgate_i = dy_s * up[i] * (1.0F + g[i] * (1.0F - s[i]));
      const float dup_i = dy_s * g[i];
      dgate[i] = dgate_i;
      dup[i] = dup_i;
    }
  }
};

template <class T>
struct Add {
  const T* a;
  const T* b;
  T* y;
  KOKKOS_FUNCTION void operator()(std::int64_t begin, std::int64_t end) const {
    for_chunks(
        end - begin,
        [](float* y_chunk, const float* a_chunk, const float* b_chunk) {
#pragma omp simd
          for (int i = 0; i < lanes; ++i) {
            y_chunk[i] = a_chunk[i] + b_chunk[i];
          }
        },
        y + begin, a + begin, b + begin);
  }
};

}  // namespace

void gelu(ConstTensorView x, TensorView y, device::StreamRef stream) {
  FOURFOLD_EXPECT(x.elements() == y.elements());
  with_storage(x.dtype(), [&]<class T>(T) {
    for_each_block("gelu", x.elements(), stream, Gelu<T>{x.as<T>(), y.as<T>()});
  });
}

void gelu_backward(ConstTensorView dy, ConstTensorView x, TensorView dx, device::StreamRef stream) {
  FOURFOLD_EXPECT(x.elements() == dy.elements() && x.elements() == dx.elements());
  with_storage(x.dtype(), [&]<class T>(T) {
    for_each_block("gelu_bwd", x.elements(), stream,
                   GeluBackward<T>{dy.as<T>(), x.as<T>(), dx.as<T>()});
  });
}

void swiglu(ConstTensorView gate_up_T2F, TensorView y_TF, device::StreamRef stream) {
  FOURFOLD_EXPECT(y_TF.shape().rank() == 2 && gate_up_T2F.elements() == 2 * y_TF.elements());
  with_storage(y_TF.dtype(), [&]<class T>(T) {
    for_each("swiglu", y_TF.dim(0), stream,
             Swiglu<T>{gate_up_T2F.as<T>(), y_TF.as<T>(), y_TF.dim(1)});
  });
}

void swiglu_backward(ConstTensorView dy_TF, ConstTensorView gate_up_T2F, TensorView dgate_up_T2F,
                     device::StreamRef stream) {
  FOURFOLD_EXPECT(dy_TF.shape().rank() == 2 && gate_up_T2F.elements() == 2 * dy_TF.elements());
  FOURFOLD_EXPECT(dgate_up_T2F.elements() == gate_up_T2F.elements());
  with_storage(dy_TF.dtype(), [&]<class T>(T) {
    for_each(
        "swiglu_bwd", dy_TF.dim(0), stream,
        SwigluBackward<T>{dy_TF.as<T>(), gate_up_T2F.as<T>(), dgate_up_T2F.as<T>(), dy_TF.dim(1)});
  });
}

void add(ConstTensorView a, ConstTensorView b, TensorView y, device::StreamRef stream) {
  FOURFOLD_EXPECT(a.elements() == y.elements() && b.elements() == y.elements());
  with_storage(y.dtype(), [&]<class T>(T) {
    for_each_block("add", y.elements(), stream, Add<T>{a.as<T>(), b.as<T>(), y.as<T>()});
  });
}

}  // namespace fourfold::kernels
