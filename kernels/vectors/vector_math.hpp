// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// exp and tanh as plain branch-free functions, so that a loop that calls them vectorises (libm's
/// do not without -ffast-math) and that a device can call them too. Relative error at most 2e-7
/// (tests/unit/kernels/vector_math_test).
#pragma once

#include "float16.hpp"

#include <cmath>
#include <cstdint>

namespace fourfold::kernels {

/// e^r for |r| <= ln 2 / 2, within 1e-7: minimax in the relative error, exact at 0.
FOURFOLD_HOST_DEVICE float vector_exp_reduced(float r) {
  float p = 8.290275e-3F;
  p = p * r + 4.1898165e-2F;
  p = p * r + 1.6667639e-1F;
  p = p * r + 4.9999148e-1F;
  p = p * r + 9.999997e-1F;
  return p * r + 1.0F;
}

/// 2^r for |r| <= 1/2: the same polynomial, within 1e-7 as well.
FOURFOLD_HOST_DEVICE float vector_exp2_reduced(float r) {
  float p = 1.32646637e-3F;
  p = p * r + 9.67156705e-3F;
  p = p * r + 5.55073468e-2F;
  p = p * r + 2.40222413e-1F;
  p = p * r + 6.93146973e-1F;
  return p * r + 1.0F;
}

/// e^x over the whole range: 0 below -104, subnormals included, infinity above 88.73, NaN for NaN.
///
/// x = n ln 2 + r; e^r by a polynomial; the power of two by exponent bits, in two halves because
/// 2^128 and 2^-149 are no normal floats.
FOURFOLD_HOST_DEVICE float vector_exp(float x) {
  // Adding 1.5 * 2^23 rounds to an integer in the low bits; 254 more is the bias of both halves.
  constexpr float shift = 12582912.0F + 254.0F;
  x = x < -104.0F ? -104.0F : x;
  x = x > 89.0F ? 89.0F : x;
  const float shifted = x * 1.44269504088896341F + shift;
  const float n = shifted - shift;
  const float r = (x - n * 0.693359375F) + n * 2.12194440e-4F;
  const auto bits = __builtin_bit_cast(std::uint32_t, shifted);
  const std::uint32_t low = bits >> 1;
  const std::uint32_t high = bits - low;
  return vector_exp_reduced(r) * __builtin_bit_cast(float, low << 23) *
         __builtin_bit_cast(float, high << 23);
}

/// vector_exp_minus of an x that is at most 88.
FOURFOLD_HOST_DEVICE float vector_exp_minus_bounded(float x) {
  constexpr float shift = 12582912.0F + 127.0F;
  const float shifted = shift - x * 1.44269504088896341F;
  const float n = shifted - shift;
  // ln 2 in two parts, as above: one would need a fused multiply-add, which not every CPU has.
  const float r = (-x - n * 0.693359375F) + n * 2.12194440e-4F;
  return vector_exp_reduced(r) *
         __builtin_bit_cast(float, __builtin_bit_cast(std::uint32_t, shifted) << 23);
}

/// e^-x for x >= 0, with 0 from 88 on, at 1.5 times the rate of vector_exp: for softmax, and for
/// what adds a number of size 1 to it. The relative error grows with x: 2e-7 + 3e-9 x. NaN for NaN.
FOURFOLD_HOST_DEVICE float vector_exp_minus(float x) {
  return vector_exp_minus_bounded(x > 88.0F ? 88.0F : x);
}

// What a device's special units compute: within a few units of a float's last place.

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
