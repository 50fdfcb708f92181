// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "on_host.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/device/arena.hpp>
#include <fourfold/device/device.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

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
  CHECK(fourfold::harness::on_host<float>(moments)[6] == 0.0F);
  CHECK(name(MemoryUse::workspace) == "workspace");
}

TEST_CASE("tensors stay where they are while more are taken", "[arena]") {
  Arena arena;
  const auto first = arena.take(MemoryUse::workspace, DType::f32, {4});
  fourfold::harness::to_device<float>({0, 0, 0, 2.5F}, first.data());
  for (int i = 0; i < 100; ++i) {
    arena.take(MemoryUse::workspace, DType::f32, {1000});
  }
  CHECK(fourfold::harness::on_host<float>(first)[3] == 2.5F);
}

#if FOURFOLD_CONTRACTS
TEST_CASE("nothing can be taken from a sealed arena", "[arena]") {
  Arena arena;
  arena.seal();
  CHECK_THROWS_AS(arena.take(MemoryUse::weights, DType::f32, {1}), fourfold::ContractViolation);
}
#endif

TEST_CASE("pinned memory is the host's to read and write", "[arena]") {
  Arena arena(Arena::Backing::pinned);
  const auto first = arena.take(MemoryUse::optimizer, DType::f32, {4});
  first.as<float>()[3] += 2.5F;
  CHECK(first.as<float>()[3] == 2.5F);
}

TEST_CASE("an arena of blocks has one for each use, and more where more is taken", "[arena]") {
  Arena counted(Arena::Backing::counted);
  const auto take_all = [](Arena& arena) {
    std::vector<fourfold::TensorView> taken;
    for (const std::int64_t elements : {3, 0, 65, 64}) {
      taken.push_back(arena.take(MemoryUse::gradients, DType::f32, {elements}));
      taken.push_back(arena.take(MemoryUse::workspace, DType::bf16, {elements}));
    }
    return taken;
  };
  take_all(counted);
  CHECK(counted.extent_bytes(MemoryUse::gradients) == 256 + 512 + 256);
  CHECK(counted.extent_bytes(MemoryUse::workspace) == 3 * 256);
  fourfold::device::MemoryBytes blocks{};
  for (std::size_t use = 0; use < blocks.size(); ++use) {
    blocks[use] = counted.extent_bytes(static_cast<MemoryUse>(use));
  }

  Arena arena(blocks);
  const auto taken = take_all(arena);
  std::vector<std::tuple<MemoryUse, std::uintptr_t, std::size_t>> seen;
  const auto look = [&](MemoryUse use, void* data, std::size_t bytes) {
    seen.emplace_back(use, reinterpret_cast<std::uintptr_t>(data), bytes);
  };
  arena.for_each(look);
  REQUIRE(seen.size() == 2);
  CHECK(std::get<0>(seen[0]) == MemoryUse::gradients);
  CHECK(std::get<2>(seen[0]) == 1024);
  CHECK(std::get<2>(seen[1]) == 768);
  CHECK(arena.total_bytes() == counted.total_bytes());
  for (std::size_t i = 0; i < taken.size(); ++i) {
    const auto address = reinterpret_cast<std::uintptr_t>(taken[i].data());
    const auto& [use, begin, bytes] = seen[i % 2];
    CHECK(((taken[i].elements() == 0 && address == 0) ||
           (address % 256 == 0 && address >= begin && address < begin + bytes)));
  }
  CHECK(fourfold::harness::on_host<float>(taken[4])[64] == 0.0F);
  fourfold::harness::to_device<float>({7.5F}, static_cast<float*>(taken[6].data()));
  CHECK(fourfold::harness::on_host<float>(taken[4])[64] == 0.0F);

  arena.take(MemoryUse::gradients, DType::f32, {1});
  arena.take(MemoryUse::optimizer, DType::f32, {1000});
  seen.clear();
  arena.for_each(look);
  CHECK(seen.size() == 4);
  CHECK(fourfold::harness::on_host<float>(taken[6])[0] == 7.5F);
}

TEST_CASE("more than there is is refused before it is asked for", "[arena]") {
  fourfold::device::Arena arena;
  try {
    arena.take(fourfold::device::MemoryUse::activations, fourfold::DType::f32,
               fourfold::Shape{std::int64_t{1} << 45});
    FAIL("nothing was thrown");
  } catch (const fourfold::SystemError& error) {
    CHECK(error.code() == fourfold::ExitCode::config);
    const std::string what = error.what();
    CHECK(what.starts_with("activations need 131072.0 GiB more beside 0.0"));
    CHECK(what.find(fourfold::device::has_own_memory
                        ? " GiB are free); free some there, or run it on a GPU"
                        : " GiB are free); free some there") != std::string::npos);
  }
  CHECK(arena.total_bytes() == 0);
}

TEST_CASE("an arena that only counts gives what no machine has", "[arena]") {
  Arena arena(Arena::Backing::counted);
  CHECK_FALSE(arena.has_memory());
  const auto first = arena.take(MemoryUse::weights, DType::bf16, {std::int64_t{1} << 45});
  const auto second = arena.take(MemoryUse::gradients, DType::f32, {3});
  const auto third = arena.take(MemoryUse::gradients, DType::f32, {5});
  CHECK(arena.bytes(MemoryUse::weights) == std::size_t{1} << 46);
  CHECK(arena.bytes(MemoryUse::gradients) == 32);
  CHECK(arena.total_bytes() == (std::size_t{1} << 46) + 32);
  // Present, each in a place of its own, and parts of them can be named.
  CHECK(first);
  CHECK(static_cast<std::byte*>(first.data()) + first.bytes() <= second.data());
  CHECK(static_cast<std::byte*>(second.data()) + second.bytes() <= third.data());
  CHECK(second.rows(1, 2).data() > second.data());
}

TEST_CASE("an arena shows the memory of its own, in the order in which it was taken", "[arena]") {
  Arena arena(Arena::Backing::pinned);
  const auto weights = arena.take(MemoryUse::weights, DType::f32, {3, 5});
  const auto gradients = arena.take(MemoryUse::gradients, DType::bf16, {7});
  std::vector<std::tuple<MemoryUse, void*, std::size_t>> seen;
  const auto note = [&](MemoryUse use, void* data, std::size_t bytes) {
    seen.emplace_back(use, data, bytes);
  };
  arena.for_each(note);
  REQUIRE(seen.size() == 2);
  CHECK(seen[0] == std::tuple(MemoryUse::weights, weights.data(), std::size_t{60}));
  CHECK(seen[1] == std::tuple(MemoryUse::gradients, gradients.data(), std::size_t{14}));

  Arena counted(Arena::Backing::counted);
  counted.take(MemoryUse::weights, DType::f32, {3});
  counted.for_each(note);
  CHECK(seen.size() == 2);
}
