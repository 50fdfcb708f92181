// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "sums/x86_intrinsics.hpp"

#include <fourfold/io/crc32c.hpp>

#include <array>
#include <cstring>

// A CRC is the remainder of a polynomial over GF(2). Registers are bit-reflected: the highest power
// of x is bit 0, so "times x" is a shift to the right.

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

std::uint32_t update_by_table(std::uint32_t state, const std::byte* data, std::size_t count) {
  for (; count >= 8; data += 8, count -= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, data, 8);
    word ^= state;
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

/// Moves a register over a fixed number of zero bytes, by four table look-ups.
class ZeroShift {
 public:
  constexpr explicit ZeroShift(std::uint64_t bytes) {
    const std::uint32_t power = power_of_bytes(bytes);
    for (std::size_t k = 0; k < 4; ++k) {
      for (std::uint32_t byte = 0; byte < 256; ++byte) {
        table_[k][byte] = multiply(power, byte << (8 * k));
      }
    }
  }
  std::uint32_t operator()(std::uint32_t state) const {
    return table_[0][state & 0xffU] ^ table_[1][(state >> 8) & 0xffU] ^
           table_[2][(state >> 16) & 0xffU] ^ table_[3][state >> 24];
  }

 private:
  std::array<std::array<std::uint32_t, 256>, 4> table_{};
};

std::uint64_t word_at(const std::byte* data) {
  std::uint64_t word = 0;
  std::memcpy(&word, data, 8);
  return word;
}

/// The instruction takes three cycles and can start every cycle, so three streams run at once.
template <std::size_t StreamBytes>
__attribute__((target("sse4.2"))) std::uint32_t update_three_streams(std::uint32_t state,
                                                                     const std::byte*& data,
                                                                     std::size_t& count) {
  static const ZeroShift one_stream(StreamBytes);
  static const ZeroShift two_streams(2 * StreamBytes);
  while (count >= 3 * StreamBytes) {
    std::uint64_t a = state;
    std::uint64_t b = 0;
    std::uint64_t c = 0;
    for (std::size_t i = 0; i < StreamBytes; i += 8) {
      a = _mm_crc32_u64(a, word_at(data + i));
      b = _mm_crc32_u64(b, word_at(data + StreamBytes + i));
      c = _mm_crc32_u64(c, word_at(data + 2 * StreamBytes + i));
    }
    state = two_streams(static_cast<std::uint32_t>(a)) ^ one_stream(static_cast<std::uint32_t>(b)) ^
            static_cast<std::uint32_t>(c);
    data += 3 * StreamBytes;
    count -= 3 * StreamBytes;
  }
  return state;
}

__attribute__((target("sse4.2"))) std::uint32_t update_by_instruction(std::uint32_t state,
                                                                      const std::byte* data,
                                                                      std::size_t count) {
  state = update_three_streams<4096>(state, data, count);
  state = update_three_streams<256>(state, data, count);
  std::uint64_t wide = state;
  for (; count >= 8; data += 8, count -= 8) {
    wide = _mm_crc32_u64(wide, word_at(data));
  }
  state = static_cast<std::uint32_t>(wide);
  for (; count != 0; ++data, --count) {
    state = _mm_crc32_u8(state, static_cast<unsigned char>(*data));
  }
  return state;
}

/// Folding: words of 128 bits are moved 256 bytes ahead by two multiplications and added there,
/// which changes no remainder; in the end 256 bytes are left that have the CRC of all. A word of 64
/// bits stands for a polynomial with x^63 in bit 0, so that the product of two, as the instruction
/// has it, is one power of x short.
class Folding {
 public:
  static constexpr std::size_t block_bytes = 256;

  Folding() {
    for (std::size_t lane = 0; lane < 4; ++lane) {
      factors_[2 * lane] = factor(8 * block_bytes + 64 - 1);
      factors_[2 * lane + 1] = factor(8 * block_bytes - 1);
    }
  }

  /// @param state  of what came before; the last bytes, fewer than two blocks, are left
  __attribute__((target("avx512f,vpclmulqdq,sse4.2"))) std::uint32_t operator()(
      std::uint32_t state, const std::byte*& data, std::size_t& count) const {
    const __m512i factors = _mm512_loadu_si512(factors_.data());
    __m512i sums[4];
    for (std::size_t k = 0; k < 4; ++k) {
      sums[k] = _mm512_loadu_si512(data + 64 * k);
    }
    sums[0] = _mm512_xor_si512(sums[0],
                               _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(state))));
    data += block_bytes;
    count -= block_bytes;
    for (; count >= block_bytes; data += block_bytes, count -= block_bytes) {
      for (std::size_t k = 0; k < 4; ++k) {
        const __m512i low = _mm512_clmulepi64_epi128(sums[k], factors, 0x00);
        const __m512i high = _mm512_clmulepi64_epi128(sums[k], factors, 0x11);
        sums[k] = _mm512_ternarylogic_epi64(low, high, _mm512_loadu_si512(data + 64 * k), 0x96);
      }
    }
    std::uint64_t rest = 0;
    for (const __m512i& sum : sums) {
      std::array<std::uint64_t, 8> words;
      _mm512_storeu_si512(words.data(), sum);
      for (const std::uint64_t word : words) {
        rest = _mm_crc32_u64(rest, word);
      }
    }
    return static_cast<std::uint32_t>(rest);
  }

 private:
  /// x^bits mod P as such a word.
  static std::uint64_t factor(std::uint64_t bits) {
    std::uint32_t power = power_of_bytes(bits / 8);
    for (std::uint64_t bit = 0; bit < bits % 8; ++bit) {
      power = times_x(power);
    }
    return std::uint64_t{power} << 32;
  }
  std::array<std::uint64_t, 8> factors_{};
};

std::uint32_t update_by_folding(std::uint32_t state, const std::byte* data, std::size_t count) {
  static const Folding fold;
  if (count >= 2 * Folding::block_bytes) {
    state = fold(state, data, count);
  }
  return update_by_instruction(state, data, count);
}

#endif

using Update = std::uint32_t (*)(std::uint32_t, const std::byte*, std::size_t);

Update fastest_update() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("vpclmulqdq") != 0) {
    return update_by_folding;
  }
  if (__builtin_cpu_supports("sse4.2") != 0) {
    return update_by_instruction;
  }
#endif
  return update_by_table;
}

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t crc) noexcept {
  static const Update update = fastest_update();
  return ~update(~crc, bytes.data(), bytes.size());
}

std::uint32_t crc32c_by_table(std::span<const std::byte> bytes, std::uint32_t crc) noexcept {
  return ~update_by_table(~crc, bytes.data(), bytes.size());
}

std::uint32_t crc32c_combine(std::uint32_t crc_a, std::uint32_t crc_b,
                             std::uint64_t bytes_b) noexcept {
  return multiply(power_of_bytes(bytes_b), crc_a) ^ crc_b;
}

}  // namespace fourfold::io
