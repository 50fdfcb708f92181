// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What a device's special units compute: within a few units of a float's last place.
#pragma once

#include "float16.hpp"

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

/// a * b + c, rounded once on a device, and as the host's compiler likes on a host. For kernels
/// that are compiled twice, for rows of whole packs and for others, and have to give the same bits:
/// there the compiler may fuse nothing by itself (kernels/CMakeLists.txt).
FOURFOLD_HOST_DEVICE float multiply_add(float a, float b, float c) {
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  return fmaf(a, b, c);
#else
  return a * b + c;
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
