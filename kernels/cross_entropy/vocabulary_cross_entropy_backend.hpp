// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What vocabulary_cross_entropy.cpp asks of a body, that of hosts or of devices, which
/// instantiates it for each storage.
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

}  // namespace fourfold::kernels
