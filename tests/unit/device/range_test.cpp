// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "recorded_ranges.hpp"

#include <fourfold/device/range.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using fourfold::device::Range;
using fourfold::harness::RecordedRange;
using fourfold::harness::take_recorded_ranges;

namespace {

std::vector<std::string> paths(const std::vector<RecordedRange>& ranges) {
  std::vector<std::string> result;
  for (const RecordedRange& range : ranges) {
    CHECK(range.is_over);
    result.push_back(range.path());
  }
  return result;
}

}  // namespace

TEST_CASE("a profiler sees ranges within each other", "[range]") {
  REQUIRE(fourfold::device::has_profiler());
  take_recorded_ranges();
  {
    const Range step([] { return "step " + std::to_string(7); });
    const Range pass("forward");
    { const Range block("block 0"); }
    { const Range block("block 1"); }
  }
  { const Range next("step 8"); }
  CHECK(paths(take_recorded_ranges()) ==
        std::vector<std::string>{"step 7", "step 7 > forward", "step 7 > forward > block 0",
                                 "step 7 > forward > block 1", "step 8"});
}

TEST_CASE("a range ends when an exception flies", "[range]") {
  take_recorded_ranges();
  const auto fail = [] {
    const Range outer("outer");
    const Range inner("inner");
    throw std::runtime_error("as planned");
  };
  CHECK_THROWS_AS(fail(), std::runtime_error);
  { const Range after("after"); }
  CHECK(paths(take_recorded_ranges()) ==
        std::vector<std::string>{"outer", "outer > inner", "after"});
}

TEST_CASE("a range whose name cannot be made is none", "[range]") {
  take_recorded_ranges();
  const auto fail = [] {
    const Range range([]() -> std::string { throw std::runtime_error("as planned"); });
  };
  CHECK_THROWS_AS(fail(), std::runtime_error);
  CHECK(take_recorded_ranges().empty());
}

TEST_CASE("threads have ranges of their own", "[range]") {
  take_recorded_ranges();
  {
    const Range here("here");
    std::thread([] { const Range there("there"); }).join();
  }
  const std::vector<RecordedRange> ranges = take_recorded_ranges();
  CHECK(paths(ranges) == std::vector<std::string>{"here", "there"});
  CHECK(ranges[0].thread != ranges[1].thread);
}
