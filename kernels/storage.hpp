// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Conversions between storage formats and float that inline and vectorise in the Kokkos bodies, on
/// hosts and devices; the same values as the conversions of base/dtype.hpp. Branch-free.
#pragma once

#include <fourfold/base/contract.hpp>
#include <fourfold/base/dtype.hpp>

#include <Kokkos_Core.hpp>

#include <cstdint>

namespace fourfold::kernels {

KOKKOS_FORCEINLINE_FUNCTION std::uint32_t float_bits(float x) {
  return __builtin_bit_cast(std::uint32_t, x);
}
KOKKOS_FORCEINLINE_FUNCTION float float_from_bits(std::uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}

KOKKOS_FORCEINLINE_FUNCTION float to_float(float x) {
  return x;
}

KOKKOS_FORCEINLINE_FUNCTION float to_float(BFloat16 x) {
  return float_from_bits(static_cast<std::uint32_t>(x.bits) << 16);
}

/// The exponent is moved by a product, which also makes subnormals normal; infinities and NaN get
/// the largest exponent.
KOKKOS_FORCEINLINE_FUNCTION float to_float(Float16 x) {
  const std::uint32_t half = x.bits;
  const float moved = float_from_bits((half & 0x7FFFU) << 13) * 0x1p112F;
  const std::uint32_t exponent = (half & 0x7C00U) == 0x7C00U ? 0x7F800000U : 0U;
  return float_from_bits(float_bits(moved) | exponent | ((half & 0x8000U) << 16));
}

KOKKOS_FORCEINLINE_FUNCTION void store(float& target, float value) {
  target = value;
}

/// A word whose upper half is `value` rounded to bf16.
KOKKOS_FORCEINLINE_FUNCTION std::uint32_t bfloat16_word(float value) {
  const std::uint32_t word = float_bits(value);
  const std::uint32_t nan = value != value ? 0xFFFFFFFFU : 0U;  // quiet, whatever was in it
  return (word + 0x7FFFU + ((word >> 16) & 1U)) | nan;
}

/// The same for the result of arithmetic on widened bf16, at two thirds of the operations: there
/// the lower half of a NaN is zero, and so rounding does not change it. Not so on a CUDA device,
/// whose arithmetic makes NaNs of ones.
KOKKOS_FORCEINLINE_FUNCTION std::uint32_t rounded_result(float value) {
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  return bfloat16_word(value);
#else
  const std::uint32_t word = float_bits(value);
  return word + 0x7FFFU + ((word >> 16) & 1U);
#endif
}

KOKKOS_FORCEINLINE_FUNCTION void store(BFloat16& target, float value) {
  target.bits = static_cast<std::uint16_t>(bfloat16_word(value) >> 16);
}

KOKKOS_FORCEINLINE_FUNCTION void store(Float16& target, float value) {
  const std::uint32_t sign = float_bits(value) & 0x80000000U;
  const std::uint32_t magnitude = float_bits(value) ^ sign;
  // 2^-14 and more: move the exponent, round to nearest even; a carry out of 65504 is infinity.
  const std::uint32_t normal = (magnitude + 0xC8000000U + 0xFFFU + ((magnitude >> 13) & 1U)) >> 13;
  // Less: adding 0.5 makes the float unit round at the subnormals' last place, 2^-24.
  const std::uint32_t subnormal = float_bits(float_from_bits(magnitude) + 0.5F) - 0x3F000000U;
  const std::uint32_t special = magnitude > 0x7F800000U ? 0x7E00U : 0x7C00U;
  const std::uint32_t finite = magnitude < 0x38800000U ? subnormal : normal;
  const std::uint32_t half = magnitude >= 0x47800000U ? special : finite;
  target.bits = static_cast<std::uint16_t>(half | (sign >> 16));
}

/// Calls body(T{}) with T = float or BFloat16, as `dtype` says. @pre dtype is f32 or bf16
template <class Body>
void with_storage(DType dtype, const Body& body) {
  FOURFOLD_EXPECT(dtype == DType::f32 || dtype == DType::bf16);
  if (dtype == DType::f32) {
    body(float{});
  } else {
    body(BFloat16{});
  }
}

/// The same for float, BFloat16 or Float16. @pre dtype is f32, bf16 or f16
template <class Body>
void with_any_storage(DType dtype, const Body& body) {
  if (dtype == DType::f16) {
    body(Float16{});
  } else {
    with_storage(dtype, body);
  }
}

}  // namespace fourfold::kernels
