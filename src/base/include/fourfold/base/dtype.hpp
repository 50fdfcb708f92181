// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Element types of tensors and the two 16-bit storage formats. Arithmetic on 16-bit values is
/// always done in float: these types only store, on purpose (Kokkos' bhalf_t is 4 bytes on hosts).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace fourfold {

enum class DType : std::uint8_t { f32, bf16, f16, f64, i32, i64, u8, u16, u32, u64 };

/// Bytes of one element.
std::size_t size_in_bytes(DType dtype) noexcept;

/// "f32", "bf16", ...: the spelling used in run files, logs and checkpoints.
std::string_view name(DType dtype) noexcept;

/// Inverse of name().
std::optional<DType> dtype_from_name(std::string_view text) noexcept;

/// bfloat16 storage: the upper half of an IEEE binary32.
struct BFloat16 {
  std::uint16_t bits = 0;

  BFloat16() = default;
  /// Rounds to nearest, ties to even; NaN stays NaN (quiet).
  explicit BFloat16(float value) noexcept {
    const auto word = std::bit_cast<std::uint32_t>(value);
    const bool is_nan = (word & 0x7fffffffU) > 0x7f800000U;
    const std::uint32_t rounded = word + 0x7fffU + ((word >> 16) & 1U);
    bits = static_cast<std::uint16_t>(is_nan ? ((word >> 16) | 0x40U) : (rounded >> 16));
  }
  explicit operator float() const noexcept {
    const std::uint32_t upper_half = bits;
    return std::bit_cast<float>(upper_half << 16);
  }
  friend bool operator==(BFloat16, BFloat16) = default;  // bits, not values
};

/// IEEE binary16 storage.
struct Float16 {
  std::uint16_t bits = 0;

  Float16() = default;
  /// Rounds to nearest, ties to even; overflow gives infinity; NaN stays NaN.
  explicit Float16(float value) noexcept;
  explicit operator float() const noexcept;
  friend bool operator==(Float16, Float16) = default;
};

static_assert(sizeof(BFloat16) == 2 && sizeof(Float16) == 2);

/// The DType of a C++ element type.
template <class T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct DTypeOf<BFloat16> {
  static constexpr DType value = DType::bf16;
};
template <>
struct DTypeOf<Float16> {
  static constexpr DType value = DType::f16;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::i64;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::u8;
};
template <>
struct DTypeOf<std::uint16_t> {
  static constexpr DType value = DType::u16;
};
template <>
struct DTypeOf<std::uint32_t> {
  static constexpr DType value = DType::u32;
};
template <>
struct DTypeOf<std::uint64_t> {
  static constexpr DType value = DType::u64;
};
template <class T>
inline constexpr DType dtype_of = DTypeOf<T>::value;

}  // namespace fourfold
