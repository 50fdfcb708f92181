// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/clock.hpp>

#include <thread>

namespace fourfold {

/// While it lives, a thread looks twice a second whether this process stands still: suspended by a
/// batch system, stopped by a signal or a debugger, on a machine that sleeps. One per process.
class StandstillWatch {
 public:
  /// @param least_s  what is shorter is taken for a busy machine
  explicit StandstillWatch(double least_s = 5);
  ~StandstillWatch();
  StandstillWatch(const StandstillWatch&) = delete;
  StandstillWatch& operator=(const StandstillWatch&) = delete;

  /// For how long this process has stood still since the watch was made, a standstill that has just
  /// ended included; 0 where there is none. Any thread may ask.
  static double total_s() noexcept;

 private:
  std::jthread looking_;
};

/// How long something takes in seconds, but for standstills.
class Stopwatch {
 public:
  double seconds() const noexcept {
    return steady_time_s() - began_s_ - (StandstillWatch::total_s() - stood_still_s_);
  }

 private:
  double began_s_ = steady_time_s();
  double stood_still_s_ = StandstillWatch::total_s();
};

}  // namespace fourfold
