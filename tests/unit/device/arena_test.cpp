// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/device/arena.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <string>

using fourfold::DType;
using fourfold::device::Arena;
using fourfold::device::MemoryUse;

TEST_CASE("an arena counts what it gives by use", "[arena]") {
  Arena arena;
  const auto weights = arena.take(MemoryUse::weights, DType::bf16, {3, 5});
  const auto moments = arena.take(MemoryUse::optimizer, DType::f32, {7});
  arena.take(MemoryUse::optimizer, DType::f32, {0});
  CHECK(arena.bytes(MemoryUse::weights) == 30);
  CHECK(arena.bytes(MemoryUse::optimizer) == 28);
  CHECK(arena.bytes(MemoryUse::gradients) == 0);
  CHECK(arena.total_bytes() == 58);
  CHECK(weights.shape() == fourfold::Shape{3, 5});
  CHECK(moments.as<float>()[6] == 0.0F);
  CHECK(name(MemoryUse::workspace) == "workspace");
}

TEST_CASE("tensors stay where they are while more are taken", "[arena]") {
  Arena arena;
  float* const first = arena.take(MemoryUse::workspace, DType::f32, {4}).as<float>();
  first[3] = 2.5F;
  for (int i = 0; i < 100; ++i) {
    arena.take(MemoryUse::workspace, DType::f32, {1000});
  }
  CHECK(first[3] == 2.5F);
}

#if FOURFOLD_CONTRACTS
TEST_CASE("nothing can be taken from a sealed arena", "[arena]") {
  Arena arena;
  arena.seal();
  CHECK(arena.sealed());
  CHECK_THROWS_AS(arena.take(MemoryUse::weights, DType::f32, {1}), fourfold::ContractViolation);
}
#endif

TEST_CASE("more than the host has is refused before it is asked for", "[arena]") {
  fourfold::device::Arena arena;
  try {
    arena.take(fourfold::device::MemoryUse::activations, fourfold::DType::f32,
               fourfold::Shape{std::int64_t{1} << 45});
    FAIL("nothing was thrown");
  } catch (const fourfold::SystemError& error) {
    CHECK(error.code() == fourfold::ExitCode::config);
    CHECK(std::string(error.what()).starts_with("activations need 131072.0 GiB more beside 0.0"));
  }
  CHECK(arena.total_bytes() == 0);
}
