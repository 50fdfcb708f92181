// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "matmul/matmul_algorithm.hpp"

#include <fourfold/device/stream.hpp>

#include <catch2/catch_test_macros.hpp>

#include <chrono>
#include <thread>

using fourfold::device::Stream;
using fourfold::kernels::TimingRounds;

TEST_CASE("each way has the times of its rounds, but the first", "[products]") {
  constexpr auto while_of_slow = std::chrono::milliseconds(3);
  const Stream stream;
  TimingRounds rounds(stream);
  for (std::size_t round = 0; round < TimingRounds::rounds; ++round) {
    rounds.mark();
    fourfold::device::run_on_host(
        [is_first = round == 0, while_of_slow] {
          if (!is_first) {
            std::this_thread::sleep_for(while_of_slow);
          }
        },
        stream);
    rounds.mark();
  }
  rounds.wait();
  CHECK(rounds.is_done());
  const auto us = rounds.us(2);
  REQUIRE(us.size() == 2);
  for (const std::vector<double>& of_way : us) {
    CHECK(of_way.size() == TimingRounds::rounds - 1);
  }
  for (const double slow_us : us[1]) {
    CHECK(slow_us > 2900);
  }
  for (const double fast_us : us[0]) {
    CHECK(fast_us >= 0);
  }
}
