// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Counts and sizes as the real numbers that messages, charts and estimates are made of. Counts
/// below 2^53 are exact.
#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>

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

/// Between the ticks of an axis: 1, 2 or 5 times a power of ten, so that `range` has about `wanted`
/// steps. @pre range > 0 and wanted > 0
inline double tick_distance(double range, int wanted) {
  const double raw = range / wanted;
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  const double leading = raw / power;
  return power * (leading < 1.5 ? 1 : leading < 3.5 ? 2 : leading < 7.5 ? 5 : 10);
}

}  // namespace fourfold
