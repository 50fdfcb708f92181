// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/philox.hpp>

#include <cstdint>
#include <vector>

namespace fourfold::train {

/// At most so many of `rows` rows, in order: all of them, or one drawn from each of `most` equal
/// parts.
inline std::vector<std::int64_t> random_rows(std::int64_t most, std::int64_t rows, PhiloxKey key) {
  std::vector<std::int64_t> result;
  for (std::int64_t i = 0; i < most && i < rows; ++i) {
    if (rows <= most) {
      result.push_back(i);
      continue;
    }
    const std::int64_t begin = rows * i / most;
    const std::int64_t count = rows * (i + 1) / most - begin;
    const std::uint32_t random = philox(key, static_cast<std::uint64_t>(i), 1).word[0];
    result.push_back(begin + static_cast<std::int64_t>(random) % count);
  }
  return result;
}

}  // namespace fourfold::train
