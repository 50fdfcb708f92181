// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// What only a device with memory and streams of its own does.
#include "on_host.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/device/device.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/device/timed_event.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
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

TEST_CASE("what work on the host throws is told to the thread that enqueued it", "[cuda]") {
  const Stream stream;
  const Stream after;
  run_on_host([] { throw std::runtime_error("no room"); }, stream);
  Event done;
  done.record(stream);
  std::string told_to_other;
  std::thread other([&] {  // perhaps another rank; the work is over when this has waited
    try {
      stream.ref().synchronize();
    } catch (const std::runtime_error& error) {
      told_to_other = error.what();
    }
  });
  other.join();
  CHECK(told_to_other.empty());
  done.wait(after);
  CHECK_THROWS_WITH(after.ref().synchronize(), "no room");
}

TEST_CASE("that an event has not happened is no failure for the next call to tell", "[cuda]") {
  const Stream stream;
  run_on_host([] {}, stream);
  Event event;
  event.record(stream);
  TimedEvent timed;
  timed.record(stream);
  while (!event.has_happened() || !timed.has_happened()) {
    CHECK(cudaGetLastError() == cudaSuccess);
  }
  CHECK(cudaGetLastError() == cudaSuccess);
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
    CHECK_THAT(error.what(), Catch::Matchers::ContainsSubstring("free some there"));
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

TEST_CASE("an event has happened when its stream has come so far", "[cuda]") {
  const Stream stream;
  Event event;
  CHECK(event.has_happened());
  std::atomic<bool> is_done = false;
  bool was_done = false;
  run_on_host([&] { is_done = true; }, stream);
  event.record(stream);
  std::thread other([&] {  // any thread may ask, and none has to wait
    while (!event.has_happened()) {
      std::this_thread::yield();
    }
    was_done = is_done;
  });
  other.join();
  CHECK(was_done);
  CHECK(event.has_happened());
}

TEST_CASE("memory of a stream is taken and given back without waiting for the device", "[cuda]") {
  const Stream busy;
  const Stream stream;
  const Buffer source(1000, MemoryKind::pinned);
  static_cast<std::uint8_t*>(source.data())[999] = 77;
  const Buffer result(1000);
  std::atomic<bool> may_go_on = false;
  run_on_host(
      [&] {
        while (!may_go_on) {
          std::this_thread::yield();
        }
      },
      busy);
  StreamBuffer first(1000, stream);
  CHECK(first.bytes() == 1000);
  CHECK(reinterpret_cast<std::uintptr_t>(first.data()) % 256 == 0);
  copy(first.data(), source.data(), 1000, stream);
  copy(result.data(), first.data(), 1000, stream);
  first.give_back(stream);
  CHECK(first.data() == nullptr);
  const StreamBuffer second = StreamBuffer(5000, stream);  // perhaps where the first was
  zero(second.data(), 5000, stream);
  may_go_on = true;  // nothing above has waited for it
  stream.ref().synchronize();
  CHECK(harness::on_host<std::uint8_t>(result.data(), 1000)[999] == 77);
  CHECK(harness::on_host<std::uint8_t>(second.data(), 5000)[4999] == 0);
}

TEST_CASE("memory that others can be let into is device memory like any", "[cuda]") {
  const std::size_t free_before = owner_of(MemoryKind::device).free_bytes;
  constexpr std::size_t bytes = (std::size_t{5} << 20) + 3;  // no whole pages
  {
    Buffer first(bytes, MemoryKind::registrable);
    const Buffer second(1, MemoryKind::registrable);
    CHECK(first.bytes() == bytes);
    CHECK(reinterpret_cast<std::uintptr_t>(first.data()) % 256 == 0);
    CHECK(owner_of(MemoryKind::device).free_bytes <= free_before - bytes);
    CHECK(harness::on_host<std::uint8_t>(first.data(), bytes) ==
          std::vector<std::uint8_t>(bytes, 0));
    harness::to_device<std::uint8_t>({1, 2, 3},
                                     static_cast<std::uint8_t*>(first.data()) + bytes - 3);
    const Buffer moved = std::move(first);
    CHECK(harness::on_host<std::uint8_t>(moved.data(), bytes)[bytes - 1] == 3);
    CHECK(harness::on_host<std::uint8_t>(second.data(), 1)[0] == 0);
  }
  CHECK(owner_of(MemoryKind::device).free_bytes + 4096 >= free_before);
  CHECK(Buffer(0, MemoryKind::registrable).data() == nullptr);
}

TEST_CASE("too little memory that others can be let into is told as any", "[cuda]") {
  const std::size_t bytes = owner_of(MemoryKind::device).total_bytes + 1;
  CHECK_THROWS_MATCHES(Buffer(bytes, MemoryKind::registrable), SystemError,
                       Catch::Matchers::MessageMatches(
                           Catch::Matchers::ContainsSubstring("cuMemCreate of ") &&
                           Catch::Matchers::ContainsSubstring("GiB are free); free some there")));
}

TEST_CASE("where there is no memory that others can be let into it is the device's own", "[cuda]") {
  setenv("FOURFOLD_EMULATED_GPU_FAIL", "cuMemCreate:1:801", 1);  // not supported
  Buffer buffer(1000, MemoryKind::registrable);
  unsetenv("FOURFOLD_EMULATED_GPU_FAIL");
  harness::to_device<std::uint8_t>({9}, buffer.data());
  const Buffer moved = std::move(buffer);
  CHECK(harness::on_host<std::uint8_t>(moved.data(), 1000)[0] == 9);
}
