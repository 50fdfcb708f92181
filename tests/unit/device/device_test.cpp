// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/device/device.hpp>

#include <catch2/catch_test_macros.hpp>

using namespace fourfold::device;

TEST_CASE("a process has one device, of which it can say what it is", "[device]") {
  const DeviceFacts taken = take_device({.local_rank = 0, .ranks_on_host = 1});
  const DeviceFacts facts = device_facts();
  CHECK(!taken.name.empty());
  CHECK(facts.name == taken.name);
  CHECK(facts.index == taken.index);
  CHECK(facts.total_bytes > 0);
}

TEST_CASE("memory of each kind is part of something", "[device]") {
  for (const MemoryKind kind : {MemoryKind::device, MemoryKind::pinned, MemoryKind::shared}) {
    const MemoryOwner owner = owner_of(kind);
    CHECK(!owner.name.empty());
    CHECK(owner.total_bytes > 0);
    CHECK(owner.free_bytes <= owner.total_bytes);
  }
  CHECK(owner_of(MemoryKind::pinned).name == "host");
  CHECK((owner_of(MemoryKind::device).name == "GPU") == has_own_memory);
}
