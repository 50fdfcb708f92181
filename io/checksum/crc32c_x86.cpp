// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "checksum/crc32c_x86.hpp"

#if defined(__x86_64__)

#include "checksum/crc32c_polynomial.hpp"
#include "checksum/x86_intrinsics.hpp"

#include <array>
#include <cstring>

namespace fourfold::io {
namespace {

using namespace crc32c_polynomial;

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
  std::uint64_t operator()(std::uint64_t state) const {
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
__attribute__((target("sse4.2"))) std::uint64_t update_three_streams(std::uint64_t state,
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
    state = two_streams(a) ^ one_stream(b) ^ c;
    data += 3 * StreamBytes;
    count -= 3 * StreamBytes;
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

  /// Folds what is there in whole blocks. @param state  of what came before
  /// @pre count >= block_bytes
  __attribute__((target("avx512f,vpclmulqdq,sse4.2"))) std::uint64_t whole_blocks(
      std::uint64_t state, const std::byte*& data, std::size_t& count) const {
    const std::size_t blocks = count / block_bytes;
    Sums sums = begin(state, data);
    for (std::size_t block = 1; block < blocks; ++block) {
      add(data + block * block_bytes, sums);
    }
    data += blocks * block_bytes;
    count %= block_bytes;
    return remainder(sums);
  }

  /// Folds the begin of each round while the instruction, for which a core has another unit, takes
  /// the end as three streams.
  __attribute__((target("avx512f,vpclmulqdq,sse4.2"))) std::uint64_t whole_rounds(
      std::uint64_t state, const std::byte*& data_left, std::size_t& count) const {
    static const ZeroShift one_stream(stream_bytes);
    static const ZeroShift two_streams(2 * stream_bytes);
    static const ZeroShift three_streams(3 * stream_bytes);
    const std::byte* data = data_left;
    for (std::size_t rounds = count / round_bytes; rounds != 0; --rounds) {
      const std::byte* const streams = data + folded_bytes;
      Sums sums = begin(state, data);
      std::uint64_t a = 0;
      std::uint64_t b = 0;
      std::uint64_t c = 0;
      for (std::size_t block = 0; block < round_blocks; ++block) {
        if (block != 0) {
          add(data + block * block_bytes, sums);
        }
        const std::byte* const words = streams + block * stream_step;
        for (std::size_t i = 0; i < stream_step; i += 8) {
          a = _mm_crc32_u64(a, word_at(words + i));
          b = _mm_crc32_u64(b, word_at(words + stream_bytes + i));
          c = _mm_crc32_u64(c, word_at(words + 2 * stream_bytes + i));
        }
      }
      state = three_streams(remainder(sums)) ^ two_streams(a) ^ one_stream(b) ^ c;
      data += round_bytes;
    }
    data_left = data;
    count %= round_bytes;
    return state;
  }

 private:
  static constexpr std::size_t stream_step = 48;  ///< of each stream, beside a block
  static constexpr std::size_t round_blocks = 128;
  static constexpr std::size_t stream_bytes = round_blocks * stream_step;
  static constexpr std::size_t folded_bytes = round_blocks * block_bytes;
  static constexpr std::size_t round_bytes = folded_bytes + 3 * stream_bytes;

  struct Sums {
    __m512i words[4];
  };

  __attribute__((target("avx512f"))) static Sums begin(std::uint64_t state, const std::byte* data) {
    Sums sums;
    for (std::size_t k = 0; k < 4; ++k) {
      sums.words[k] = _mm512_loadu_si512(data + 64 * k);
    }
    sums.words[0] =
        _mm512_xor_si512(sums.words[0], _mm512_zextsi128_si512(_mm_cvtsi64_si128(state)));
    return sums;
  }

  __attribute__((target("avx512f,vpclmulqdq"))) void add(const std::byte* data, Sums& sums) const {
    const __m512i factors = _mm512_loadu_si512(factors_.data());
    for (std::size_t k = 0; k < 4; ++k) {
      const __m512i low = _mm512_clmulepi64_epi128(sums.words[k], factors, 0x00);
      const __m512i high = _mm512_clmulepi64_epi128(sums.words[k], factors, 0x11);
      sums.words[k] = _mm512_ternarylogic_epi64(low, high, _mm512_loadu_si512(data + 64 * k), 0x96);
    }
  }

  __attribute__((target("avx512f,sse4.2"))) static std::uint64_t remainder(const Sums& sums) {
    std::uint64_t rest = 0;
    for (const __m512i& sum : sums.words) {
      std::array<std::uint64_t, 8> words;
      _mm512_storeu_si512(words.data(), sum);
      for (const std::uint64_t word : words) {
        rest = _mm_crc32_u64(rest, word);
      }
    }
    return rest;
  }

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

__attribute__((target("sse4.2"))) std::uint32_t update(std::uint64_t state, const std::byte* data,
                                                       std::size_t count) {
  state = update_three_streams<4096>(state, data, count);
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

}  // namespace

std::uint32_t crc32c_by_instruction(std::uint32_t state, const std::byte* data, std::size_t count) {
  return update(state, data, count);
}

bool can_fold_crc32c() {
  return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("vpclmulqdq") != 0;
}

std::uint32_t crc32c_by_folding(std::uint32_t state, const std::byte* data, std::size_t count) {
  static const Folding fold;
  std::uint64_t folded = fold.whole_rounds(state, data, count);
  if (count >= Folding::block_bytes) {
    folded = fold.whole_blocks(folded, data, count);
  }
  return update(folded, data, count);
}

}  // namespace fourfold::io

#endif
