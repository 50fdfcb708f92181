// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// binary16 to float and back, the same values as the conversions of base/dtype.hpp: as formulas
/// without branches, which inline and vectorise on any host; through the instructions of a CUDA
/// device; and for runs of elements through the CPU's own where this build may use them (x86-64:
/// F16C).
#pragma once

#include <fourfold/base/dtype.hpp>

#include <cstdint>

// What marks small functions that hosts and devices call alike, in files that need no Kokkos.
#if defined(__CUDACC__) || defined(__HIPCC__)
#define FOURFOLD_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define FOURFOLD_HOST_DEVICE [[gnu::always_inline]] inline
#endif

// A compiler for devices reads this file too, and takes no such instructions for one.
#if defined(__F16C__) && !defined(__CUDACC__) && !defined(__HIPCC__)
#include <immintrin.h>
#define FOURFOLD_F16C
#endif

namespace fourfold::kernels {

/// The exponent is moved by a product, which also makes subnormals normal; infinities and NaN get
/// the largest exponent.
FOURFOLD_HOST_DEVICE float float16_to_float(std::uint16_t bits) {
#if defined(__CUDA_ARCH__)
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
#else
  const std::uint32_t half = bits;
  const float moved = __builtin_bit_cast(float, (half & 0x7FFFU) << 13) * 0x1p112F;
  const std::uint32_t exponent = (half & 0x7C00U) == 0x7C00U ? 0x7F800000U : 0U;
  return __builtin_bit_cast(
      float, __builtin_bit_cast(std::uint32_t, moved) | exponent | ((half & 0x8000U) << 16));
#endif
}

/// Rounds to nearest, ties to even; 65520 and more become infinity, NaN stays NaN.
FOURFOLD_HOST_DEVICE std::uint16_t float_to_float16(float value) {
#if defined(__CUDA_ARCH__)
  std::uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
#else
  const auto word = __builtin_bit_cast(std::uint32_t, value);
  const std::uint32_t sign = word & 0x80000000U;
  const std::uint32_t magnitude = word ^ sign;
  // 2^-14 and more: move the exponent, round to nearest even; a carry out of 65504 is infinity.
  const std::uint32_t normal = (magnitude + 0xC8000000U + 0xFFFU + ((magnitude >> 13) & 1U)) >> 13;
  // Less: adding 0.5 makes the float unit round at the subnormals' last place, 2^-24.
  const float shifted = __builtin_bit_cast(float, magnitude) + 0.5F;
  const std::uint32_t subnormal = __builtin_bit_cast(std::uint32_t, shifted) - 0x3F000000U;
  const std::uint32_t special = magnitude > 0x7F800000U ? 0x7E00U : 0x7C00U;
  const std::uint32_t finite = magnitude < 0x38800000U ? subnormal : normal;
  const std::uint32_t half = magnitude >= 0x47800000U ? special : finite;
  return static_cast<std::uint16_t>(half | (sign >> 16));
#endif
}

/// How many elements the two functions below take.
inline constexpr int float16_run = 8;

/// to[i] = from[i] for one run, which need not be aligned.
FOURFOLD_HOST_DEVICE void widen_run(const Float16* from, float* to) {
#if defined(FOURFOLD_F16C)
  _mm256_storeu_ps(to, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
#else
  for (int i = 0; i < float16_run; ++i) {
    to[i] = float16_to_float(from[i].bits);
  }
#endif
}
FOURFOLD_HOST_DEVICE void narrow_run(const float* from, Float16* to) {
#if defined(FOURFOLD_F16C)
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                   _mm256_cvtps_ph(_mm256_loadu_ps(from), _MM_FROUND_TO_NEAREST_INT));
#else
  for (int i = 0; i < float16_run; ++i) {
    to[i].bits = float_to_float16(from[i]);
  }
#endif
}

}  // namespace fourfold::kernels

#undef FOURFOLD_F16C
