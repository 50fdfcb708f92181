// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "launch.hpp"
#include "storage.hpp"
#include "vector_math.hpp"

#include <fourfold/kernels/activation.hpp>

#include <Kokkos_Core.hpp>

namespace fourfold::kernels {
namespace {

KOKKOS_FORCEINLINE_FUNCTION float sigmoid(float x) {
  return 1.0F / (1.0F + vector_exp(-x));
}

constexpr float sqrt_8_over_pi = 1.5957691216057308F;
constexpr float gelu_cubic = 0.044715F;

/// 0.5 (1 + tanh(u)) = sigmoid(2 u): one exponential, and no cancellation for negative x.
KOKKOS_FORCEINLINE_FUNCTION float gelu_gate(float x) {
  return sigmoid(sqrt_8_over_pi * x * (1.0F + gelu_cubic * x * x));
}

template <class T>
struct Gelu {
  const T* x;
  T* y;
  KOKKOS_FUNCTION void operator()(std::int64_t begin, std::int64_t end) const {
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) {
      const float v = to_float(x[i]);
      store(y[i], v * gelu_gate(v));
    }
  }
};

template <class T>
struct GeluBackward {
  const T* dy;
  const T* x;
  T* dx;
  KOKKOS_FUNCTION void operator()(std::int64_t begin, std::int64_t end) const {
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) {
      const float v = to_float(x[i]);
      const float gate = gelu_gate(v);
      const float slope = sqrt_8_over_pi * (1.0F + 3.0F * gelu_cubic * v * v);
      store(dx[i], to_float(dy[i]) * (gate + v * gate * (1.0F - gate) * slope));
    }
  }
};

template <class T>
struct Swiglu {
  const T* gate_up_T2F;
  T* y_TF;
  std::int64_t features;
  KOKKOS_FUNCTION void operator()(std::int64_t t) const {
    const T* gate = gate_up_T2F + 2 * t * features;
    const T* up = gate + features;
    T* y = y_TF + t * features;
#pragma omp simd
    for (std::int64_t f = 0; f < features; ++f) {
      const float g = to_float(gate[f]);
      store(y[f], g * sigmoid(g) * to_float(up[f]));
    }
  }
};

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
#pragma omp simd
    for (std::int64_t f = 0; f < features; ++f) {
      const float g = to_float(gate[f]);
      const float s = sigmoid(g);
      const float dy_up = to_float(dy[f]) * to_float(up[f]);
      const float dy_silu = to_float(dy[f]) * g * s;
      store(dgate[f], dy_up * s * (1.0F + g * (1.0F - s)));
      store(dup[f], dy_silu);
    }
  }
};

template <class T>
struct Add {
  const T* a;
  const T* b;
  T* y;
  KOKKOS_FUNCTION void operator()(std::int64_t begin, std::int64_t end) const {
#pragma omp simd
    for (std::int64_t i = begin; i < end; ++i) {
      store(y[i], to_float(a[i]) + to_float(b[i]));
    }
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
