// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/device/buffer.hpp>
#include <fourfold/device/device.hpp>
#include <fourfold/device/process_memory.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstddef>

using namespace fourfold::device;

TEST_CASE("memory of a device that was taken since is seen, and remembered",
          "[device_memory_watch]") {
  constexpr std::size_t bytes = std::size_t{64} << 20;
  const Buffer before(bytes, MemoryKind::device);
  DeviceMemoryWatch watch;
  CHECK(watch.peak_bytes() == 0);
  std::size_t most = 0;
  {
    const Buffer buffer(bytes, MemoryKind::device);
    watch.look();
    if (!has_own_memory) {
      CHECK(watch.used_bytes() + watch.total_bytes() + watch.peak_bytes() == 0);
      return;
    }
    CHECK(watch.total_bytes() == device_facts().total_bytes);
    CHECK(watch.used_bytes() >= 2 * bytes);
    CHECK(watch.used_bytes() < watch.total_bytes());
    most = watch.used_bytes();
  }
  watch.look();
  CHECK(watch.peak_bytes() >= bytes);
  CHECK(watch.peak_bytes() < bytes + bytes / 2);
  CHECK(watch.used_bytes() <= most - bytes / 2);  // CUDA itself takes some hundred MiB
}

TEST_CASE("the device is asked after the first steps, then every ten seconds",
          "[device_memory_watch]") {
  DeviceMemoryWatch watch;
  for (const double now_s : {100.0, 100.5, 101.0}) {
    CHECK(watch.look_now_and_then(now_s) == has_own_memory);
  }
  CHECK_FALSE(watch.look_now_and_then(110.9));
  CHECK(watch.look_now_and_then(111.0) == has_own_memory);
  CHECK_FALSE(watch.look_now_and_then(120.9));
}
