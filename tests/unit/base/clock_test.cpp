// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/clock.hpp>

#include <catch2/catch_test_macros.hpp>

#include <ctime>

TEST_CASE("clocks tell seconds, since 1970 or of a clock that goes on", "[clock]") {
  const auto before = static_cast<double>(std::time(nullptr));
  const double now_s = fourfold::unix_time_s();
  CHECK(before - 1 <= now_s);
  CHECK(now_s <= static_cast<double>(std::time(nullptr)) + 1);
  const double start_s = fourfold::steady_time_s();
  timespec kernel{};
  ::clock_gettime(CLOCK_MONOTONIC, &kernel);
  CHECK(start_s <= static_cast<double>(kernel.tv_sec) + 1e-9 * static_cast<double>(kernel.tv_nsec));
  CHECK(fourfold::steady_time_s() >= start_s);
}
