// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "checksum/file_region.hpp"
#include "checksum/x86_intrinsics.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/philox.hpp>
#include <fourfold/base/tensor_view.hpp>
#include <fourfold/io/digest.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <span>

namespace fourfold::io {

namespace {

constexpr std::uint64_t block_elements = 256;
constexpr std::uint64_t high_block_key = 0x6a09e667f3bcc909ULL;
constexpr std::uint64_t low_element_key = 0xbb67ae8584caa73bULL;
constexpr std::uint64_t high_element_key = 0x3c6ef372fe94f82bULL;

using Weights = std::array<std::uint64_t, block_elements>;

Weights element_weights(std::uint64_t key) {
  Weights weights;
  for (std::uint64_t j = 0; j < block_elements; ++j) {
    weights[j] = mix64(j + key) | 1;
  }
  return weights;
}

/// Sum over elements of weight * (bits + 1), for at most one block: the loop that compilers turn
/// into vector code. memcpy because data may be unaligned.
template <class Word>
Digest digest_of_block(const std::byte* data, std::size_t count, const std::uint64_t* low_weight,
                       const std::uint64_t* high_weight) {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  for (std::size_t k = 0; k < count; ++k) {
    Word bits;
    std::memcpy(&bits, data + k * sizeof(Word), sizeof(Word));
    const std::uint64_t value = std::uint64_t{1} + bits;
    low += low_weight[k] * value;
    high += high_weight[k] * value;
  }
  return {low, high};
}

#if defined(__x86_64__)

/// Eight words of memory, widened.
template <class Word>
__attribute__((target("avx512f,avx512dq,avx512vl"))) __m512i eight_words(const std::byte* data) {
  if constexpr (sizeof(Word) == 1) {
    return _mm512_cvtepu8_epi64(_mm_loadu_si64(data));
  } else if constexpr (sizeof(Word) == 2) {
    return _mm512_cvtepu16_epi64(_mm_loadu_si128(reinterpret_cast<const __m128i*>(data)));
  } else if constexpr (sizeof(Word) == 4) {
    return _mm512_cvtepu32_epi64(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(data)));
  } else {
    return _mm512_loadu_si512(data);
  }
}

/// The same with the one multiplication of 64 bits that vectors have.
template <class Word>
__attribute__((target("avx512f,avx512dq,avx512vl"))) Digest digest_of_block_avx512(
    const std::byte* data, std::size_t count, const std::uint64_t* low_weight,
    const std::uint64_t* high_weight) {
  const __m512i one = _mm512_set1_epi64(1);
  __m512i low = _mm512_setzero_si512();
  __m512i high = _mm512_setzero_si512();
  std::size_t k = 0;
  for (; k + 8 <= count; k += 8) {
    const __m512i value = _mm512_add_epi64(eight_words<Word>(data + k * sizeof(Word)), one);
    low = _mm512_add_epi64(low, _mm512_mullo_epi64(_mm512_loadu_si512(low_weight + k), value));
    high = _mm512_add_epi64(high, _mm512_mullo_epi64(_mm512_loadu_si512(high_weight + k), value));
  }
  Digest digest =
      digest_of_block<Word>(data + k * sizeof(Word), count - k, low_weight + k, high_weight + k);
  // Not _mm512_reduce_add_epi64: it adds signed words, which may not overflow.
  std::array<std::uint64_t, 16> lanes;
  _mm512_storeu_si512(lanes.data(), low);
  _mm512_storeu_si512(lanes.data() + 8, high);
  for (std::size_t lane = 0; lane < 8; ++lane) {
    digest.low += lanes[lane];
    digest.high += lanes[lane + 8];
  }
  return digest;
}

#endif

template <class Word>
auto fastest_digest_of_block() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0) {
    return digest_of_block_avx512<Word>;
  }
#endif
  return digest_of_block<Word>;
}

template <class Word>
void add_run(Digest& digest, std::uint64_t first, std::uint64_t count, const std::byte* data) {
  static const Weights low_weights = element_weights(low_element_key);
  static const Weights high_weights = element_weights(high_element_key);
  static const auto of_block = fastest_digest_of_block<Word>();
  while (count != 0) {
    const std::uint64_t block = first / block_elements;
    const std::uint64_t within = first % block_elements;
    const std::uint64_t part = std::min(count, block_elements - within);
    const Digest sum =
        of_block(data, part, low_weights.data() + within, high_weights.data() + within);
    digest.low += sum.low * (mix64(block) | 1);
    digest.high += sum.high * (mix64(block + high_block_key) | 1);
    first += part;
    count -= part;
    data += part * sizeof(Word);
  }
}

void add_run(Digest& digest, std::uint64_t first, std::uint64_t count, const std::byte* data,
             std::size_t element_bytes) {
  switch (element_bytes) {
    case 1:
      return add_run<std::uint8_t>(digest, first, count, data);
    case 2:
      return add_run<std::uint16_t>(digest, first, count, data);
    case 4:
      return add_run<std::uint32_t>(digest, first, count, data);
    default:
      return add_run<std::uint64_t>(digest, first, count, data);
  }
}

}  // namespace

std::string Digest::str() const {
  return fmt::format("{:016x}{:016x}", high, low);
}

std::optional<Digest> Digest::from_text(std::string_view text) noexcept {
  if (text.size() != 32) {
    return std::nullopt;
  }
  Digest digest;
  const char* middle = text.data() + 16;
  const char* end = middle + 16;
  const auto high = std::from_chars(text.data(), middle, digest.high, 16);
  const auto low = std::from_chars(middle, end, digest.low, 16);
  if (high.ec != std::errc() || high.ptr != middle || low.ec != std::errc() || low.ptr != end) {
    return std::nullopt;
  }
  return digest;
}

Digest digest_of_box(const Shape& shape, const Box& box, ConstTensorView data) {
  FOURFOLD_EXPECT(data.elements() == box.elements());
  FOURFOLD_EXPECT(contains(Box::whole(shape), box));
  const std::size_t element_bytes = size_in_bytes(data.dtype());
  const auto* bytes = static_cast<const std::byte*>(data.data());
  Digest digest;
  for_each_run(box, Box::whole(shape), box, [&](const Run& run) {
    add_run(digest, run.target_element, run.elements, bytes + run.source_element * element_bytes,
            element_bytes);
  });
  return digest;
}

namespace {

constexpr std::string_view sum_mark = "# crc32c ";
constexpr std::string_view sum_meaning =
    " of all lines before: as long as it fits, this file may be replaced\n";

/// The line that ends such a text.
std::string sum_line(std::string_view text) {
  return fmt::format("{}{:08x}{}", sum_mark, crc32c(std::as_bytes(std::span(text))), sum_meaning);
}

}  // namespace

std::string with_sum(std::string text) {
  text += sum_line(text);
  return text;
}

bool sum_holds(std::string_view text) {
  const std::size_t last = text.rfind(sum_mark);
  return last != std::string_view::npos && text.substr(last) == sum_line(text.substr(0, last));
}

Digest digest_of_bytes(DType dtype, const Shape& shape, const Box& box, std::uint64_t begin,
                       std::span<const std::byte> bytes) {
  const std::int64_t element_bytes = size_in_bytes(dtype);
  FOURFOLD_EXPECT(begin % element_bytes == 0 && bytes.size() % element_bytes == 0);
  const std::int64_t first_byte = begin;
  const Range range{first_byte / element_bytes, std::ssize(bytes) / element_bytes};
  Digest digest;
  const std::byte* data = bytes.data();
  for (Box part : boxes_of_flat_range(box.extent, range)) {
    for (std::size_t dim = 0; dim < box.rank(); ++dim) {
      part.offset[dim] += box.offset[dim];
    }
    const ConstTensorView view(data, dtype, part.extent);
    digest += digest_of_box(shape, part, view);
    data += view.bytes();
  }
  return digest;
}

}  // namespace fourfold::io
