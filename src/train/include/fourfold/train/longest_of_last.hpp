// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

namespace fourfold::train {

/// The longest of the last N times, in seconds: what the next one may take where they differ.
template <std::size_t N>
requires(N >= 1) class LongestOfLast {
 public:
  void add(double time_s) noexcept {
    times_[next_] = time_s;
    next_ = (next_ + 1) % N;
  }
  /// 0: there was none yet.
  double value() const noexcept { return *std::max_element(times_.begin(), times_.end()); }

 private:
  std::array<double, N> times_{};
  std::size_t next_ = 0;
};

}  // namespace fourfold::train
