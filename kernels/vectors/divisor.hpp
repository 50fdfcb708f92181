// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "float16.hpp"

#include <cstdint>

namespace fourfold::kernels {

/// Divides by a number that is known before a kernel starts. A device has no instruction for that:
/// a 64-bit division is a hundred of others. Numbers below 2^31 are divided by one product and a
/// shift (Granlund and Montgomery 1994: with 2^(s - 1) < d <= 2^s and m = ceil(2^(31 + s) / d),
/// n / d = n m / 2^(31 + s), rounded down).
class Divisor {
 public:
  /// @pre divisor > 0
  explicit Divisor(std::int64_t divisor) : divisor_(divisor) {
    if (divisor >= limit) {
      return;  // of numbers below the limit none is left
    }
    std::uint32_t bits = 0;
    while ((std::int64_t{1} << bits) < divisor) {
      ++bits;
    }
    shift_ = 31 + bits;
    const std::uint64_t d = divisor;
    multiplier_ = static_cast<std::uint32_t>(((std::uint64_t{1} << shift_) + d - 1) / d);
  }

  FOURFOLD_HOST_DEVICE std::int64_t quotient(std::int64_t number) const {
    if (number >= limit) {
      return number / divisor_;
    }
    const std::uint64_t n = static_cast<std::uint32_t>(number);
    return (n * multiplier_) >> shift_;
  }
  FOURFOLD_HOST_DEVICE std::int64_t value() const { return divisor_; }

 private:
  static constexpr std::int64_t limit = std::int64_t{1} << 31;

  std::int64_t divisor_;
  std::uint32_t multiplier_ = 0;
  std::uint32_t shift_ = 0;
};

}  // namespace fourfold::kernels
