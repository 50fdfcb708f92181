// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// A CRC is the remainder of a polynomial over GF(2). Registers are bit-reflected: the highest
/// power of x is bit 0, so "times x" is a shift to the right.
#pragma once

#include <cstdint>

namespace fourfold::io::crc32c_polynomial {

inline constexpr std::uint32_t polynomial = 0x82f63b78U;  // 0x1EDC6F41 reflected
inline constexpr std::uint32_t one = 0x80000000U;         // x^0

constexpr std::uint32_t times_x(std::uint32_t a) {
  return (a & 1U) != 0 ? (a >> 1) ^ polynomial : a >> 1;
}

/// a * b mod P
constexpr std::uint32_t multiply(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (std::uint32_t bit = one; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) {
      product ^= b;
    }
    b = times_x(b);
  }
  return product;
}

/// x^(8 * bytes) mod P: the factor by which `bytes` zero bytes move a register.
constexpr std::uint32_t power_of_bytes(std::uint64_t bytes) {
  std::uint32_t power = one >> 8;  // x^8
  std::uint32_t result = one;
  for (; bytes != 0; bytes >>= 1) {
    if ((bytes & 1U) != 0) {
      result = multiply(result, power);
    }
    power = multiply(power, power);
  }
  return result;
}

}  // namespace fourfold::io::crc32c_polynomial
