// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/device/stream.hpp>

#include <cstdint>

namespace fourfold::kernels {

/// What a body of rotary.cpp works on.
template <class T>
struct RotaryOperands {
  T* x;
  std::int64_t batch_stride;
  std::int64_t token_stride;
  std::int64_t batch;
  std::int64_t tokens;
  std::int64_t heads;
  std::int64_t half;  ///< of a head's features
  const float* cos_sin_PH;
  const std::int32_t* position_T;
  float direction;  ///< -1 turns back
};

/// The body, of hosts or of devices, which instantiates it for each storage. There is a head.
template <class T>
void rotate_heads(const RotaryOperands<T>& with, device::StreamRef stream);

}  // namespace fourfold::kernels
