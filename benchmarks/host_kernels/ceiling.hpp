// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What a core can do at best: stream memory in the same mix of reads and writes as a kernel, with
/// regular stores, and compute exponentials out of the first-level cache.
#pragma once

#include "vectors/vector_math.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fourfold::benchmarks {

/// The arrays of a StreamCeiling, one per stream.
using Streams = std::vector<std::vector<std::uint32_t>>;

/// The streams of a kernel: arrays only read, read and written at the same place, only written.
struct Mix {
  std::array<int, 3> count{};  ///< read, updated, written
  std::array<int, 3> bytes{};  ///< of an element, in the same order
  void (*pass)(Streams&, std::int64_t elements) = nullptr;
};

/// Bytes that the program asks for per element: the read for ownership that a store to a line not
/// in cache costs is not counted, neither for kernels nor for the ceiling.
inline std::int64_t bytes_per_element(const Mix& mix) {
  return mix.count[0] * mix.bytes[0] + 2 * mix.count[1] * mix.bytes[1] +
         mix.count[2] * mix.bytes[2];
}

/// Reads everything, writes a sum of what was read everywhere: one vectorised loop.
template <class Read, int reads, class Updated, int updates, class Written, int writes>
void stream_pass(Streams& streams, std::int64_t elements) {
  const Read* read[reads + 1] = {};
  Updated* updated[updates + 1] = {};
  Written* written[writes + 1] = {};
  for (std::size_t k = 0; k < reads; ++k) {
    read[k] = reinterpret_cast<const Read*>(streams[k].data());
  }
  for (std::size_t k = 0; k < updates; ++k) {
    updated[k] = reinterpret_cast<Updated*>(streams[reads + k].data());
  }
  for (std::size_t k = 0; k < writes; ++k) {
    written[k] = reinterpret_cast<Written*>(streams[reads + updates + k].data());
  }
#pragma omp simd
  for (std::int64_t i = 0; i < elements; ++i) {
    std::uint32_t sum = 1;
    for (int k = 0; k < reads; ++k) {
      sum += read[k][i];
    }
    for (int k = 0; k < updates; ++k) {
      updated[k][i] = static_cast<Updated>(updated[k][i] + sum);
    }
    for (int k = 0; k < writes; ++k) {
      written[k][i] = static_cast<Written>(sum);
    }
  }
}

/// Only reads: a sum.
template <class Read>
void read_pass(Streams& streams, std::int64_t elements) {
  const auto* read = reinterpret_cast<const Read*>(streams[0].data());
  std::uint32_t sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < elements; ++i) {
    sum += read[i];
  }
  streams[0][0] = sum;
}

template <class Read, int reads, class Updated, int updates, class Written, int writes>
Mix mix_of() {
  Mix mix{.count = {reads, updates, writes},
          .bytes = {sizeof(Read), sizeof(Updated), sizeof(Written)}};
  if constexpr (updates + writes == 0) {
    mix.pass = read_pass<Read>;
  } else {
    mix.pass = stream_pass<Read, reads, Updated, updates, Written, writes>;
  }
  return mix;
}

/// All streams of elements of `size` bytes, 2 or 4.
template <int reads, int updates, int writes>
Mix mix_of_size(int size) {
  using Half = std::uint16_t;
  using Word = std::uint32_t;
  return size == 2 ? mix_of<Half, reads, Half, updates, Half, writes>()
                   : mix_of<Word, reads, Word, updates, Word, writes>();
}

/// Arrays for a mix.
class StreamCeiling {
 public:
  StreamCeiling(const Mix& mix, std::int64_t elements);
  void run();

 private:
  Mix mix_;
  std::int64_t elements_;
  Streams streams_;
};

/// The room's exp over an array that stays in the first-level cache.
class ExpCeiling {
 public:
  static constexpr std::int64_t elements = 2048;
  ExpCeiling();
  /// @post 64 * elements exponentials have been computed
  void run();

 private:
  std::array<float, elements> x_;
  std::array<float, elements> y_;
};

}  // namespace fourfold::benchmarks
