// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "stand_still.hpp"

#include <fourfold/base/standstill.hpp>

#include <catch2/catch_test_macros.hpp>

#include <chrono>
#include <thread>

using fourfold::StandstillWatch;
using fourfold::Stopwatch;

TEST_CASE("a time does not count while the process is stopped", "[standstill]") {
  Stopwatch before;
  CHECK(StandstillWatch::total_s() == 0);
  {
    const StandstillWatch watch(1);
    const Stopwatch stopwatch;
    std::this_thread::sleep_for(std::chrono::seconds(2));  // it waits, and does not stand still
    CHECK(StandstillWatch::total_s() == 0);
    for (int time = 1; time <= 2; ++time) {
      fourfold::harness::stand_still(3);
      const double total_s = StandstillWatch::total_s();  // at once, before the watch has looked
      CHECK(total_s > 2 * time);
      CHECK(total_s < 3.5 * time);
      std::this_thread::sleep_for(std::chrono::milliseconds(700));  // and after that
      CHECK(StandstillWatch::total_s() < total_s + 0.5);
      CHECK(StandstillWatch::total_s() >= total_s);
    }
    CHECK(stopwatch.seconds() > 3);
    CHECK(stopwatch.seconds() < 6);  // of more than 9
  }
  CHECK(StandstillWatch::total_s() == 0);
  before = Stopwatch();
  CHECK(before.seconds() < 1);
}
