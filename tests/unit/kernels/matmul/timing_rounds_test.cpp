// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "matmul/matmul_algorithm.hpp"

#include <fourfold/device/stream.hpp>

#include <catch2/catch_test_macros.hpp>

#include <chrono>
#include <thread>

using fourfold::device::Stream;
using fourfold::kernels::time_ways;
using fourfold::kernels::timing_rounds;

TEST_CASE("each way has the times of its rounds, but the first", "[products]") {
  constexpr auto while_of_slow = std::chrono::milliseconds(3);
  const Stream stream;
  std::size_t calls = 0;
  std::size_t calls_of_refused = 0;
  const auto us = time_ways(3, stream, [&](std::size_t way) {
    const bool is_first = calls++ < 3;
    if (way == 2) {
      ++calls_of_refused;
      return false;
    }
    if (way == 1 && !is_first) {
      fourfold::device::run_on_host([while_of_slow] { std::this_thread::sleep_for(while_of_slow); },
                                    stream);
    }
    return true;
  });
  REQUIRE(us.size() == 3);
  for (const std::size_t way : {0, 1}) {
    CHECK(us[way].size() == timing_rounds - 1);
  }
  for (const double slow_us : us[1]) {
    CHECK(slow_us > 2900);
  }
  for (const double fast_us : us[0]) {
    CHECK(fast_us >= 0);
  }
  CHECK(us[2].empty());
  CHECK(calls_of_refused == 1);
}
