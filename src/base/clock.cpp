// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/clock.hpp>

#include <chrono>

namespace fourfold {
namespace {

template <class Clock>
double seconds_of() noexcept {
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

}  // namespace

double unix_time_s() noexcept {
  return seconds_of<std::chrono::system_clock>();
}

double steady_time_s() noexcept {
  return seconds_of<std::chrono::steady_clock>();
}

}  // namespace fourfold
