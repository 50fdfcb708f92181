// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "failing_device.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/device/device.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

using namespace fourfold;
using namespace fourfold::device;

TEST_CASE("memory that cannot be zeroed is given back", "[buffer]") {
  const MemoryKind kind = GENERATE(MemoryKind::device, MemoryKind::registrable);
  const std::size_t bytes = std::size_t{1} << 20U;
  const std::size_t free_before = owner_of(kind).free_bytes;
  {
    const Buffer taken(bytes, kind);
    CHECK(owner_of(kind).free_bytes <= free_before - bytes);
  }
  {
    const harness::FailingDevice failing("cudaMemsetAsync:1:719");
    CHECK_THROWS_AS(Buffer(bytes, kind), SystemError);
  }
  CHECK(owner_of(kind).free_bytes == free_before);
}
