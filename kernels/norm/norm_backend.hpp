// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What the norms of norm.hpp ask of norm_host.kokkos.cpp, or of norm*_device.kokkos.cpp. T: f32,
/// bf16 or f16.
#pragma once

#include <fourfold/device/stream.hpp>

#include <cstdint>

namespace fourfold::kernels {

template <class T>
struct NormOperands {
  const T* x_TD = nullptr;
  const T* residual_TD = nullptr;  ///< added to x in front of the norm, or nullptr
  const T* weight_D = nullptr;
  const T* bias_D = nullptr;  ///< nullptr: an rms_norm
  T* sum_TD = nullptr;        ///< x + residual, where that is normalised; may be either of them
  T* y_TD = nullptr;
  float* mean_T = nullptr;  ///< nullptr: an rms_norm
  float* rstd_T = nullptr;
  std::int64_t rows = 0;
  int features = 0;
  float epsilon = 0;
};

template <class T>
void norm_rows(const char* label, const NormOperands<T>& operands, device::StreamRef stream);

template <class T>
struct NormBackwardOperands {
  const T* dy_TD = nullptr;
  const T* x_TD = nullptr;
  const T* weight_D = nullptr;
  const float* mean_T = nullptr;  ///< nullptr: an rms_norm
  const float* rstd_T = nullptr;
  T* dx_TD = nullptr;
  float* dweight_D = nullptr;
  float* dbias_D = nullptr;  ///< nullptr: an rms_norm
  std::int64_t rows = 0;
  int features = 0;
};

template <class T>
void norm_rows_backward(const char* label, const NormBackwardOperands<T>& operands,
                        device::StreamRef stream);

/// What the gradient of an element needs to know of its row.
struct RowMeans {
  float mean;
  float rstd;
  float g;       ///< mean of dy * weight
  float g_xhat;  ///< mean of dy * weight * xhat
};

}  // namespace fourfold::kernels
