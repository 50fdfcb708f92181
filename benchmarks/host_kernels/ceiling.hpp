// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What a core can do at best: stream memory in the same mix of reads and writes as a kernel, with
/// regular stores, and compute exponentials out of the first-level cache.
#pragma once

#include "vector_math.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fourfold::benchmarks {

/// The streams of a kernel, in bytes of one element each: `read` is only read, `updated` is read
/// and written at the same place, `written` is only written. At most four of a kind, zeros at the
/// end.
struct Mix {
  std::array<int, 4> read{};
  std::array<int, 4> updated{};
  std::array<int, 4> written{};
};

/// Bytes that the program asks for per element: the read for ownership that a store to a line not
/// in cache costs is not counted, neither for kernels nor for the ceiling.
inline std::int64_t bytes_per_element(const Mix& mix) {
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    bytes += mix.read[i] + 2 * mix.updated[i] + mix.written[i];
  }
  return bytes;
}

/// Arrays of a mix, and one pass over them that does next to nothing with what it reads.
class StreamCeiling {
 public:
  StreamCeiling(const Mix& mix, std::int64_t elements);
  void run();

 private:
  Mix mix_;
  std::int64_t elements_;
  std::vector<std::vector<std::uint64_t>> arrays_;  ///< read, updated, written
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
