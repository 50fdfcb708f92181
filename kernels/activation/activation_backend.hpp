// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/device/stream.hpp>

#include <cstdint>

namespace fourfold::kernels {

/// What activation.cpp asks of activation_host.kokkos.cpp or activation_device.kokkos.cpp, which
/// instantiates it for each storage.
template <class T>
struct ActivationOperands {
  static void gelu(const T* x, T* y, std::int64_t elements, device::StreamRef stream);
  static void gelu_backward(const T* dy, const T* x, T* dx, std::int64_t elements,
                            device::StreamRef stream);
  static void swiglu(const T* gate_up_T2F, T* y_TF, std::int64_t rows, std::int64_t features,
                     device::StreamRef stream);
  static void swiglu_backward(const T* dy_TF, const T* gate_up_T2F, T* dgate_up_T2F,
                              std::int64_t rows, std::int64_t features, device::StreamRef stream);
  static void add(const T* a, const T* b, T* y, std::int64_t elements, device::StreamRef stream);
};

}  // namespace fourfold::kernels
