// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// What only a device with memory and streams of its own does.
#include "on_host.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/device/device.hpp>
#include <fourfold/device/stream.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <thread>
#include <vector>

using namespace fourfold;
using namespace fourfold::device;

TEST_CASE("a copy from pinned memory is late: what it reads must stay", "[cuda]") {
  const Stream stream;
  const Buffer pinned(4, MemoryKind::pinned);
  const Buffer target(4);
  auto* const bytes = static_cast<std::uint8_t*>(pinned.data());
  bytes[0] = 1;
  copy(target.data(), bytes, 4, stream);
  stream.ref().synchronize();
  CHECK(harness::on_host<std::uint8_t>(target.data(), 4)[0] == 1);
}

TEST_CASE("work on the host waits for the stream, and the stream for it", "[cuda]") {
  const Stream stream;
  const Buffer pinned(sizeof(int), MemoryKind::pinned);
  const Buffer there(sizeof(int));
  auto* const number = static_cast<int*>(pinned.data());
  std::atomic<int> seen = 0;
  copy(there.data(), std::vector<int>{5}.data(), sizeof(int), stream);
  copy(number, there.data(), sizeof(int), stream);
  run_on_host(
      [&] {
        seen = *number;
        *number = 7;
      },
      stream);
  copy(there.data(), number, sizeof(int), stream);
  stream.ref().synchronize();
  CHECK(seen == 5);
  CHECK(harness::on_host<int>(there.data(), 1)[0] == 7);
}

TEST_CASE("what work on the host throws comes out where somebody waits", "[cuda]") {
  const Stream stream;
  run_on_host([] { throw std::runtime_error("no room"); }, stream);
  CHECK_THROWS_WITH(stream.ref().synchronize(), "no room");
  CHECK_NOTHROW(stream.ref().synchronize());
}

TEST_CASE("a thread beside the first uses the same device", "[cuda]") {
  const DeviceFacts facts = take_device({.local_rank = 0, .ranks_on_host = 1});
  DeviceFacts other;
  std::thread([&] { other = device_facts(); }).join();
  CHECK(other.bus_id == facts.bus_id);
}

TEST_CASE("more memory than the device has is refused with what it has", "[cuda]") {
  try {
    const Buffer buffer(owner_of(MemoryKind::device).total_bytes + 1);
    FAIL("nothing was thrown");
  } catch (const SystemError& error) {
    CHECK(error.code() == ExitCode::config);
    CHECK_THAT(error.what(), Catch::Matchers::ContainsSubstring("cudaMalloc of "));
    CHECK_THAT(error.what(), Catch::Matchers::ContainsSubstring(" GiB are free"));
    CHECK_THAT(error.what(), Catch::Matchers::ContainsSubstring("train.micro_batch"));
  }
  CHECK_NOTHROW(Buffer(1024));
}

TEST_CASE("streams that are never used take nothing, and priorities are kept", "[cuda]") {
  const Stream high(StreamPriority::high);
  CHECK(high.ref() == high.ref());
  CHECK_FALSE(high.ref() == Stream().ref());
  Stream moved(StreamPriority::high);
  moved = Stream();
  CHECK_NOTHROW(moved.ref().synchronize());
}

TEST_CASE("two ranks take two devices, or are refused", "[cuda]") {
  // As many as there are here, which is what a job asks for.
  CHECK_NOTHROW(take_device({.local_rank = 0, .ranks_on_host = 2, .may_share = true}));
  CHECK(take_device({.local_rank = 0, .ranks_on_host = 1}).index == 0);
}
