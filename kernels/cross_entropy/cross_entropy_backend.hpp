// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/device/stream.hpp>

#include <cstdint>

namespace fourfold::kernels {

/// What a body of cross_entropy.cpp works on.
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

/// The body, of hosts or of devices, which instantiates it for each storage.
template <class T, bool with_gradient>
void cross_entropy_rows(const LossOperands<T>& with, device::StreamRef stream);

}  // namespace fourfold::kernels
