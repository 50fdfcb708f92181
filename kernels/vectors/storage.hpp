// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Conversions between storage formats and float that inline and vectorise in the fast bodies, on
/// hosts and devices; the same values as the conversions of base/dtype.hpp. Branch-free.
#pragma once

#include "float16.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/dtype.hpp>
#include <fourfold/base/tensor_view.hpp>

#include <cstdint>
#include <limits>

namespace fourfold::kernels {

FOURFOLD_HOST_DEVICE std::uint32_t float_bits(float x) {
  return __builtin_bit_cast(std::uint32_t, x);
}
FOURFOLD_HOST_DEVICE float float_from_bits(std::uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}

FOURFOLD_HOST_DEVICE float to_float(float x) {
  return x;
}

FOURFOLD_HOST_DEVICE float to_float(BFloat16 x) {
  const std::uint32_t upper_half = x.bits;
  return float_from_bits(upper_half << 16);
}

FOURFOLD_HOST_DEVICE float to_float(Float16 x) {
  return float16_to_float(x.bits);
}

FOURFOLD_HOST_DEVICE void store(float& target, float value) {
  target = value;
}

/// A word whose upper half is `value` rounded to bf16.
FOURFOLD_HOST_DEVICE std::uint32_t bfloat16_word(float value) {
  const std::uint32_t word = float_bits(value);
  const std::uint32_t nan = value != value ? 0xFFFFFFFFU : 0U;  // quiet, whatever was in it
  return (word + 0x7FFFU + ((word >> 16) & 1U)) | nan;
}

/// The same for the result of arithmetic on widened bf16, at two thirds of the operations: there
/// the lower half of a NaN is zero, and so rounding does not change it. Not so on a CUDA device,
/// whose arithmetic makes NaNs of ones.
FOURFOLD_HOST_DEVICE std::uint32_t rounded_result(float value) {
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  return bfloat16_word(value);
#else
  const std::uint32_t word = float_bits(value);
  return word + 0x7FFFU + ((word >> 16) & 1U);
#endif
}

FOURFOLD_HOST_DEVICE void store(BFloat16& target, float value) {
#if defined(__CUDA_ARCH__)
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(target.bits) : "f"(value));
#else
  target.bits = static_cast<std::uint16_t>(bfloat16_word(value) >> 16);
#endif
}

FOURFOLD_HOST_DEVICE void store(Float16& target, float value) {
  target.bits = float_to_float16(value);
}

/// Both of two neighbours: one instruction of a CUDA device.
FOURFOLD_HOST_DEVICE void store_two(BFloat16* target, float first, float second) {
#if defined(__CUDA_ARCH__)
  std::uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  target[0].bits = static_cast<std::uint16_t>(pair);
  target[1].bits = static_cast<std::uint16_t>(pair >> 16);
#else
  store(target[0], first);
  store(target[1], second);
#endif
}
FOURFOLD_HOST_DEVICE void store_two(Float16* target, float first, float second) {
#if defined(__CUDA_ARCH__)
  std::uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  target[0].bits = static_cast<std::uint16_t>(pair);
  target[1].bits = static_cast<std::uint16_t>(pair >> 16);
#else
  store(target[0], first);
  store(target[1], second);
#endif
}

/// The features of a row as kernels count them. @pre twice as many still are an int
inline int row_length(std::int64_t features) {
  FOURFOLD_EXPECT(features <= std::numeric_limits<int>::max() / 2);
  return static_cast<int>(features);
}

/// Calls body(T{}) with T = float, BFloat16 or Float16, as `dtype` says. @pre it is one of them
template <class Body>
void with_storage(DType dtype, const Body& body) {
  FOURFOLD_EXPECT(dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16);
  if (dtype == DType::f32) {
    body(float{});
  } else if (dtype == DType::bf16) {
    body(BFloat16{});
  } else {
    body(Float16{});
  }
}

// One element of a tensor whose type is chosen at run time, as the reference bodies read and write
// it. Slow.

/// @pre dtype is f32, bf16 or f16
inline double read_element(const void* data, DType dtype, std::int64_t index) {
  double value = 0;
  with_storage(dtype,
               [&]<class T>(T) { value = static_cast<float>(static_cast<const T*>(data)[index]); });
  return value;
}

/// Rounds to float, then to the storage format. @pre dtype is f32, bf16 or f16
inline void write_element(void* data, DType dtype, std::int64_t index, double value) {
  with_storage(dtype,
               [&]<class T>(T) { static_cast<T*>(data)[index] = T(static_cast<float>(value)); });
}

inline double read_element(ConstTensorView x, std::int64_t index) {
  return read_element(x.data(), x.dtype(), index);
}

inline void write_element(TensorView x, std::int64_t index, double value) {
  write_element(x.data(), x.dtype(), index, value);
}

}  // namespace fourfold::kernels
