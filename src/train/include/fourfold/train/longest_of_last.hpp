// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

namespace fourfold::train {

/// The longest of the last N times, in seconds: what the next one may take where they differ.
template <std::size_t N>
requires(N >= 2) class LongestOfLast {
 public:
  void add(double time_s) noexcept {
    times_[next_] = time_s;
    next_ = (next_ + 1) % N;
  }
  /// 0: there was none yet. A single one that is far from the others, as where a file system stood
  /// still in it, counts as `most_times` the next longest, or as `always_s` if that is more.
  double value(double most_times = 8, double always_s = 5) const noexcept {
    std::array<double, N> times = times_;
    std::sort(times.begin(), times.end());
    const double longest = times[N - 1];
    const double next = times[N - 2];
    return next > 0 ? std::min(longest, std::max(most_times * next, always_s)) : longest;
  }

 private:
  std::array<double, N> times_{};
  std::size_t next_ = 0;
};

}  // namespace fourfold::train
