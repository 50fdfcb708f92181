// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/cores.hpp>

#include <catch2/catch_test_macros.hpp>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

TEST_CASE("work that is shared among cores is done once, all of it", "[cores]") {
  for (const std::int64_t count : {0, 1, 2, 3, 7, 8, 9, 64, 65, 1001}) {
    for (const std::int64_t least : {1, 2, 100}) {
      std::vector<std::atomic<int>> times(static_cast<std::size_t>(count));
      std::atomic<int> parts = 0;
      fourfold::share_among_cores(count, least, [&](std::int64_t begin, std::int64_t end) {
        ++parts;
        for (std::int64_t i = begin; i < end; ++i) {
          ++times[static_cast<std::size_t>(i)];
        }
      });
      CHECK(std::ranges::all_of(times, [](const auto& one) { return one == 1; }));
      CHECK(parts == std::clamp<std::int64_t>(count / least, 1, fourfold::cores_allowed()));
    }
  }
}

TEST_CASE("a thread that may use one core does all itself", "[cores]") {
  std::thread([] {
    cpu_set_t mask;
    CHECK(sched_getaffinity(0, sizeof(mask), &mask) == 0);
    CHECK(fourfold::cores_allowed() == CPU_COUNT(&mask));
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    CHECK(sched_setaffinity(0, sizeof(one), &one) == 0);
    CHECK(fourfold::cores_allowed() == 1);
    const std::thread::id me = std::this_thread::get_id();
    int parts = 0;
    fourfold::share_among_cores(1000, 1, [&](std::int64_t begin, std::int64_t end) {
      parts += std::this_thread::get_id() == me && begin == 0 && end == 1000 ? 1 : 100;
    });
    CHECK(parts == 1);
  }).join();
}
