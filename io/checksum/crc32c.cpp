// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// A CRC is the remainder of a polynomial over GF(2). Registers are bit-reflected: the highest
/// power of x is bit 0, so "times x" is a shift to the right.
#include "checksum/x86_intrinsics.hpp"

#include <fourfold/io/digest.hpp>

#include <array>
#include <cstring>

namespace fourfold::io {
namespace {

constexpr std::uint32_t polynomial = 0x82f63b78U;  // 0x1EDC6F41 reflected
constexpr std::uint32_t one = 0x80000000U;         // x^0

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

/// x^exponent mod P. With 8 * n: the factor by which n zero bytes move a register.
constexpr std::uint32_t power_of_x(std::uint64_t exponent) {
  std::uint32_t power = times_x(one);
  std::uint32_t result = one;
  for (; exponent != 0; exponent >>= 1) {
    if ((exponent & 1U) != 0) {
      result = multiply(result, power);
    }
    power = multiply(power, power);
  }
  return result;
}

/// Table k holds, for each byte value, its remainder after k more bytes ("slicing by eight").
using Slices = std::array<std::array<std::uint32_t, 256>, 8>;

constexpr Slices make_slices() {
  Slices slices{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) {
      crc = times_x(crc);
    }
    slices[0][byte] = crc;
  }
  for (std::size_t k = 1; k < slices.size(); ++k) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t previous = slices[k - 1][byte];
      slices[k][byte] = (previous >> 8) ^ slices[0][previous & 0xffU];
    }
  }
  return slices;
}

constexpr Slices slices = make_slices();

std::uint64_t word_at(const std::byte* data) {
  std::uint64_t word = 0;
  std::memcpy(&word, data, 8);
  return word;
}

// All take the register as it is inside (not inverted) and give what it is after `count` bytes.

std::uint32_t update_by_table(std::uint32_t state, const std::byte* data, std::size_t count) {
  for (; count >= 8; data += 8, count -= 8) {
    const std::uint64_t word = word_at(data) ^ state;
    state = 0;
    for (std::size_t k = 0; k < 8; ++k) {
      state ^= slices[7 - k][(word >> (8 * k)) & 0xffU];
    }
  }
  for (; count != 0; ++data, --count) {
    state = (state >> 8) ^ slices[0][(state ^ static_cast<std::uint32_t>(*data)) & 0xffU];
  }
  return state;
}

#if defined(__x86_64__)

/// The register after so many zero bytes. The product of two reflected words of 32 bits is one
/// power of x short in 64 bits, of which the instruction takes the remainder after 32 zeros more.
template <std::uint64_t Bytes>
__attribute__((target("sse4.2,pclmul"))) std::uint64_t after_zeros(std::uint64_t state) {
  constexpr std::uint32_t power = power_of_x(8 * Bytes - 33);
  const __m128i product =
      _mm_clmulepi64_si128(_mm_cvtsi64_si128(state), _mm_cvtsi64_si128(power), 0);
  return _mm_crc32_u64(0, _mm_cvtsi128_si64(product));
}

/// The instruction takes three cycles and can start every cycle, so three streams run at once.
template <std::size_t StreamBytes>
__attribute__((target("sse4.2,pclmul"))) std::uint64_t update_three_streams(std::uint64_t state,
                                                                            const std::byte*& data,
                                                                            std::size_t& count) {
  while (count >= 3 * StreamBytes) {
    std::uint64_t a = state;
    std::uint64_t b = 0;
    std::uint64_t c = 0;
    for (std::size_t i = 0; i < StreamBytes; i += 8) {
      a = _mm_crc32_u64(a, word_at(data + i));
      b = _mm_crc32_u64(b, word_at(data + StreamBytes + i));
      c = _mm_crc32_u64(c, word_at(data + 2 * StreamBytes + i));
    }
    state = after_zeros<2 * StreamBytes>(a) ^ after_zeros<StreamBytes>(b) ^ c;
    data += 3 * StreamBytes;
    count -= 3 * StreamBytes;
  }
  return state;
}

__attribute__((target("sse4.2,pclmul"))) std::uint32_t update_by_instruction(std::uint32_t before,
                                                                             const std::byte* data,
                                                                             std::size_t count) {
  std::uint64_t state = update_three_streams<4096>(before, data, count);
  state = update_three_streams<256>(state, data, count);
  for (; count >= 8; data += 8, count -= 8) {
    state = _mm_crc32_u64(state, word_at(data));
  }
  auto crc = static_cast<std::uint32_t>(state);
  for (; count != 0; ++data, --count) {
    crc = _mm_crc32_u8(crc, std::to_integer<unsigned char>(*data));
  }
  return crc;
}

#endif

auto fastest_update() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2") != 0 && __builtin_cpu_supports("pclmul") != 0) {
    return update_by_instruction;
  }
#endif
  return update_by_table;
}

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc) noexcept {
  static const auto update = fastest_update();
  return ~update(~crc, bytes.data(), bytes.size());
}

std::uint32_t crc32c_by_table(std::span<const std::byte> bytes, std::uint32_t crc) noexcept {
  return ~update_by_table(~crc, bytes.data(), bytes.size());
}

std::uint32_t crc32c_combine(std::uint32_t crc_a, std::uint32_t crc_b,
                             std::uint64_t bytes_b) noexcept {
  return multiply(power_of_x(8 * bytes_b), crc_a) ^ crc_b;
}

}  // namespace fourfold::io
