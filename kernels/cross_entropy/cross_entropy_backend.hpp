// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What cross_entropy.cpp and vocabulary_cross_entropy.cpp ask of the kernels for hosts or for
/// devices, which instantiate it for each storage.
#pragma once

#include <fourfold/device/stream.hpp>

#include <cstdint>

namespace fourfold::kernels {

template <class T>
struct LossPartOperands {
  const T* logits_TV;
  const std::int32_t* target_T;
  float* statistics_T3;
  std::int64_t rows;
  std::int64_t first_column;
  int columns;
};

/// cross_entropy_part()
template <class T>
void cross_entropy_part_rows(const LossPartOperands<T>& with, device::StreamRef stream);

template <class T>
struct LossPartGradient {
  T* logits_TV;
  const std::int32_t* target_T;
  const float* normaliser_T2;
  std::int64_t rows;
  std::int64_t first_column;
  int columns;
  float gradient_scale;
};

/// cross_entropy_part_gradient()
template <class T>
void cross_entropy_part_gradient_rows(const LossPartGradient<T>& with, device::StreamRef stream);

template <class T>
struct LossOperands {
  const T* logits_TV;
  T* gradient_TV;  ///< logits_TV again, or nullptr
  const std::int32_t* target_T;
  float* loss_T;
  std::int64_t rows;
  int columns;
  int vocabulary;
  float gradient_scale;
};

/// cross_entropy_forward_backward(), or cross_entropy()
template <class T, bool with_gradient>
void cross_entropy_rows(const LossOperands<T>& with, device::StreamRef stream);

}  // namespace fourfold::kernels
