// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/dtype.hpp>
#include <fourfold/base/enum_name.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace fourfold {
namespace {

// Of all types, in their order.
constexpr std::array<std::string_view, 10> names{"f32", "bf16", "f16", "f64", "i32",
                                                 "i64", "u8",   "u16", "u32", "u64"};
constexpr std::array<std::size_t, 10> sizes{4, 2, 2, 8, 4, 8, 1, 2, 4, 8};

}  // namespace

std::size_t size_in_bytes(DType dtype) noexcept {
  return sizes[static_cast<std::size_t>(dtype)];
}

std::string_view name(DType dtype) noexcept {
  return name_in(names, dtype);
}

std::optional<DType> dtype_from_name(std::string_view text) noexcept {
  const auto* const found = std::ranges::find(names, text);
  return found == names.end()
             ? std::nullopt
             : std::optional(DType{static_cast<std::uint8_t>(found - names.begin())});
}

Float16::Float16(float value) noexcept {
  const auto word = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = word & 0x7fffffffU;
  std::uint32_t rounded = 0;
  if (magnitude > 0x7f800000U) {  // NaN
    rounded = 0x7e00U;
  } else if (magnitude >= 0x477ff000U) {  // rounds to 65536 or more
    rounded = 0x7c00U;
  } else if (magnitude <
             0x38800000U) {  // subnormal in binary16: let the FPU round to a multiple of 2^-24
    const float scaled = std::bit_cast<float>(magnitude) * 16777216.0F;
    rounded = static_cast<std::uint32_t>(std::nearbyint(scaled));
  } else {
    const std::uint32_t rebased = magnitude - 0x38000000U;
    rounded = (rebased + 0xfffU + ((rebased >> 13) & 1U)) >> 13;
  }
  const std::uint32_t sign = (word >> 16) & 0x8000U;
  bits = static_cast<std::uint16_t>(sign | rounded);
}

Float16::operator float() const noexcept {
  const std::uint32_t sign = (bits & 0x8000U) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fU;
  const std::uint32_t mantissa = bits & 0x3ffU;
  if (exponent == 0x1fU) {
    return std::bit_cast<float>(sign | 0x7f800000U | (mantissa << 13));
  }
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * (1.0F / 16777216.0F);
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
  }
  return std::bit_cast<float>(sign | ((exponent + 112U) << 23) | (mantissa << 13));
}

}  // namespace fourfold
