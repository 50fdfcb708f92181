// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "activation_backend.hpp"
#include "vectors/fast_math_device.hpp"
#include "vectors/for_each_pack.hpp"

namespace fourfold::kernels {
namespace {

constexpr float sqrt_8_over_pi = 1.5957691216057308F;
constexpr float log2_e = 1.4426950408889634F;
constexpr float gelu_cubic = 0.044715F;

/// gelu(x) = x sigmoid(2 u), for 0.5 (1 + tanh(u)) = sigmoid(2 u) = 1 / (1 + 2^-(2 u log2 e)): its
/// denominator.
KOKKOS_FORCEINLINE_FUNCTION float gelu_denominator(float x) {
  constexpr float linear = sqrt_8_over_pi * log2_e;
  return 1.0F + fast_exp2(-x * (linear + linear * gelu_cubic * (x * x)));
}

/// 1 + e^-x.
KOKKOS_FORCEINLINE_FUNCTION float swish_denominator(float x) {
  return 1.0F + fast_exp2(-x * log2_e);
}

template <class T>
struct Gelu {
  const T* x;
  T* y;
  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t first, Count<n> /*count*/) const {
    float v[n];
    load<n>(x + first, v);
    for (float& each : v) {
      each = fast_divide(each, gelu_denominator(each));
    }
    save<n>(y + first, v);
  }
};

template <class T>
struct GeluBackward {
  const T* dy;
  const T* x;
  T* dx;
  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t first, Count<n> /*count*/) const {
    float v[n];
    float gradient[n];
    load<n>(x + first, v);
    load<n>(dy + first, gradient);
    for (int i = 0; i < n; ++i) {
      constexpr float cubic = 3.0F * gelu_cubic * sqrt_8_over_pi;
      const float s = fast_divide(1.0F, gelu_denominator(v[i]));
      const float x_slope = v[i] * (sqrt_8_over_pi + cubic * (v[i] * v[i]));
      gradient[i] *= s * (1.0F + (1.0F - s) * x_slope);
    }
    save<n>(dx + first, gradient);
  }
};

template <class T>
struct Swiglu {
  const T* gate_up_T2F;
  T* y_TF;
  std::int64_t features;
  template <int n>
  KOKKOS_FORCEINLINE_FUNCTION void operator()(std::int64_t t, std::int64_t f,
                                              Count<n> /*count*/) const {
    const T* const from = gate_up_T2F + 2 * t * features + f;
    float gate[n];
    float up[n];
    load<n>(from, gate);
    load<n>(from + features, up);
    for (int i = 0; i < n; ++i) {
      up[i] = fast_divide(gate[i] * up[i], swish_denominator(gate[i]));
    }
    save<n>(y_TF + t * features + f, up);
  }
};

template <class T>
struct SwigluBackward {
  const T* dy_TF;
  const T* gate_up_T2F;
  T* dgate_up_T2F;
  std::int64_t features;
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
      const float s = fast_divide(1.0F, swish_denominator(gate[i]));
      const float dy_s = dy[i] * s;
      const float dgate = dy_s * up[i] * (1.0F + gate[i] * (1.0F - s));
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

}  // namespace

template <class T>
void ActivationOperands<T>::gelu(const T* x, T* y, std::int64_t elements,
                                 device::StreamRef stream) {
  constexpr int n = pack_elements<T>;
  for_each_pack<n>("gelu", elements, at_packs<n>(x, y), stream, Gelu<T>{x, y});
}

template <class T>
void ActivationOperands<T>::gelu_backward(const T* dy, const T* x, T* dx, std::int64_t elements,
                                          device::StreamRef stream) {
  constexpr int n = pack_elements<T>;
  for_each_pack<n>("gelu_bwd", elements, at_packs<n>(dy, x, dx), stream,
                   GeluBackward<T>{dy, x, dx});
}

template <class T>
void ActivationOperands<T>::swiglu(const T* gate_up_T2F, T* y_TF, std::int64_t rows,
                                   std::int64_t features, device::StreamRef stream) {
  constexpr int n = pack_elements<T>;
  for_each_pack_of_rows<n>("swiglu", rows, features, at_packs<n>(gate_up_T2F, y_TF), stream,
                           Swiglu<T>{gate_up_T2F, y_TF, features});
}

template <class T>
void ActivationOperands<T>::swiglu_backward(const T* dy_TF, const T* gate_up_T2F, T* dgate_up_T2F,
                                            std::int64_t rows, std::int64_t features,
                                            device::StreamRef stream) {
  constexpr int n = pack_elements<T>;
  for_each_pack_of_rows<n>("swiglu_bwd", rows, features,
                           at_packs<n>(dy_TF, gate_up_T2F, dgate_up_T2F), stream,
                           SwigluBackward<T>{dy_TF, gate_up_T2F, dgate_up_T2F, features});
}

template <class T>
void ActivationOperands<T>::add(const T* a, const T* b, T* y, std::int64_t elements,
                                device::StreamRef stream) {
  constexpr int n = pack_elements<T>;
  for_each_pack<n>("add", elements, at_packs<n>(a, b, y), stream, Add<T>{a, b, y});
}

template struct ActivationOperands<float>;
template struct ActivationOperands<BFloat16>;
template struct ActivationOperands<Float16>;

}  // namespace fourfold::kernels
