// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Counts and sizes as the real numbers that messages, charts and estimates are made of. Counts
/// below 2^53 are exact.
#pragma once

#include <cstdint>

namespace fourfold {

/// `part` of `whole`; of nothing: not finite, as IEEE 754 has it.
inline double ratio(std::int64_t part, std::int64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

/// Of 2^20 bytes.
inline double mib(std::int64_t bytes) {
  return static_cast<double>(bytes) / (1 << 20);
}
/// Of 2^30 bytes.
inline double gib(std::int64_t bytes) {
  return static_cast<double>(bytes) / (1 << 30);
}

}  // namespace fourfold
