// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/clock.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/device/timed_event.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

using fourfold::steady_time_s;
using fourfold::device::Stream;
using fourfold::device::StreamClock;
using fourfold::device::TimedEvent;

static_assert(!std::is_copy_constructible_v<TimedEvent>);

namespace {

/// How far a device's clock and the host's may be apart.
constexpr double apart_s = 1e-3;

/// Far more than that.
void wait_a_while() {
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

}  // namespace

TEST_CASE("a clock that is renewed is fine again", "[timed_event]") {
  const Stream stream;
  StreamClock clock(stream);
  // From here on f32 milliseconds are 30 ns apart.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  std::vector<double> errors_ns;
  for (int pair = 0; pair < 51; ++pair) {
    clock.renew(stream);
    TimedEvent first;
    TimedEvent second;
    first.record(stream);
    second.record(stream);
    const double between_s = clock.time_s(second) - clock.time_s(first);
    errors_ns.push_back(std::abs(1e9 * between_s - 1e3 * second.us_since(first)));
  }
  std::ranges::nth_element(errors_ns, errors_ns.begin() + 25);
  CHECK(errors_ns[25] < 1);
}

TEST_CASE("events lie between the host's times around them, in the order of the stream",
          "[timed_event]") {
  const Stream stream;
  const StreamClock clock(stream);
  wait_a_while();
  const double before_s = steady_time_s();
  TimedEvent first;
  TimedEvent second;
  first.record(stream);
  second.record(stream);
  stream.ref().synchronize();
  const double between_s = steady_time_s();
  CHECK(before_s <= clock.time_s(first) + apart_s);
  CHECK(clock.time_s(first) <= clock.time_s(second));
  CHECK(clock.time_s(second) <= between_s + apart_s);

  CHECK(second.us_since(first) >= 0);
  wait_a_while();
  TimedEvent third;
  third.record(stream);
  third.synchronize();
  CHECK(third.has_happened());
  CHECK(std::abs(1e-6 * third.us_since(first) - (clock.time_s(third) - clock.time_s(first))) <
        1e-5);
  CHECK(third.us_since(second) > 4e3);

  StreamClock renewed(stream);
  renewed.renew(stream);
  wait_a_while();
  renewed.renew(stream);
  for (const TimedEvent* event : {&first, &third}) {  // from before, and from after a settled one
    CHECK(std::abs(renewed.time_s(*event) - clock.time_s(*event)) < apart_s);
  }

  first.record(stream);  // again
  stream.ref().synchronize();
  CHECK(between_s + apart_s < clock.time_s(first));
  CHECK(clock.time_s(first) <= steady_time_s() + apart_s);
  const TimedEvent moved = std::move(first);
  CHECK(between_s + apart_s < clock.time_s(moved));
}
