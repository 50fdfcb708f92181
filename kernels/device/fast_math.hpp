// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What a device's special units compute: within a few units of a float's last place.
#pragma once

#include "host_device.hpp"

#include <cmath>

namespace fourfold::kernels {

/// 2^x; 0 where that would be subnormal.
FOURFOLD_HOST_DEVICE float fast_exp2(float x) {
#if defined(__CUDA_ARCH__)
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#else
  return std::exp2(x);
#endif
}

/// a / b; 0 where b is above 2^126.
FOURFOLD_HOST_DEVICE float fast_divide(float a, float b) {
#if defined(__CUDA_ARCH__)
  return __fdividef(a, b);
#else
  return a / b;
#endif
}

}  // namespace fourfold::kernels
