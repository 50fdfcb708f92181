// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "on_host.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/device/buffer.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

using fourfold::device::Buffer;
using fourfold::device::MemoryKind;

namespace {

constexpr MemoryKind all_kinds[] = {MemoryKind::device, MemoryKind::pinned, MemoryKind::host,
                                    MemoryKind::shared};

std::vector<std::uint8_t> contents(const Buffer& buffer) {
  return fourfold::harness::on_host<std::uint8_t>(buffer.data(), buffer.bytes());
}

}  // namespace

TEST_CASE("a buffer is aligned and zero-filled, whatever its size and kind", "[buffer]") {
  const MemoryKind kind = GENERATE(from_range(std::span(all_kinds)));
  for (const std::size_t bytes : {1UL, 255UL, 256UL, 257UL, 100'003UL}) {
    const Buffer buffer(bytes, kind);
    CHECK(buffer.bytes() == bytes);
    CHECK(reinterpret_cast<std::uintptr_t>(buffer.data()) % 256 == 0);
    CHECK(std::ranges::count(contents(buffer), 0) == static_cast<std::ptrdiff_t>(bytes));
  }
  CHECK(Buffer(0, kind).data() == nullptr);
}

TEST_CASE("memory that cannot be had is an error that says how much", "[buffer]") {
  for (const std::size_t bytes :
       {std::numeric_limits<std::size_t>::max(), std::numeric_limits<std::size_t>::max() / 4}) {
    try {
      const Buffer buffer(bytes);
      FAIL("no error for " << bytes << " bytes");
    } catch (const fourfold::SystemError& error) {
      CHECK(error.code() == fourfold::ExitCode::config);
      CHECK(std::string(error.what()).find(std::to_string(bytes)) != std::string::npos);
    }
  }
}

TEST_CASE("moving a buffer moves its memory", "[buffer]") {
  Buffer first(64);
  const void* const memory = first.data();
  Buffer second(std::move(first));
  CHECK(second.data() == memory);
  Buffer third(8);
  third = std::move(second);
  CHECK(third.data() == memory);
  CHECK(third.bytes() == 64);
}

TEST_CASE("copy and zero touch exactly the bytes named", "[buffer]") {
  const Buffer buffer(16, GENERATE(MemoryKind::device, MemoryKind::pinned, MemoryKind::shared));
  std::vector<std::uint8_t> numbers(16);
  std::iota(numbers.begin(), numbers.end(), std::uint8_t{1});
  auto* const bytes = static_cast<std::uint8_t*>(buffer.data());
  fourfold::device::copy(bytes + 2, numbers.data(), 9, {});
  fourfold::device::zero(bytes + 4, 3, {});
  fourfold::device::copy(nullptr, nullptr, 0, {});
  fourfold::device::zero(nullptr, 0, {});
  const std::vector<std::uint8_t> expected{0, 0, 1, 2, 0, 0, 0, 6, 7, 8, 9, 0, 0, 0, 0, 0};
  CHECK(std::ranges::equal(contents(buffer), expected));
}

TEST_CASE("rows are copied between any pitches, and nothing beside them", "[buffer]") {
  const MemoryKind kind = GENERATE(MemoryKind::device, MemoryKind::pinned, MemoryKind::shared);
  const fourfold::device::Stream stream;
  const Buffer source(12, kind);
  const Buffer target(15, kind);
  std::vector<std::uint8_t> numbers(12);
  std::iota(numbers.begin(), numbers.end(), std::uint8_t{1});
  fourfold::device::copy(source.data(), numbers.data(), 12, stream);
  auto* const from = static_cast<std::uint8_t*>(source.data());
  auto* const to = static_cast<std::uint8_t*>(target.data());
  fourfold::device::copy_rows(to + 1, 5, from + 2, 4, 2, 3, stream);
  fourfold::device::copy_rows(to, 5, from, 4, 0, 3, stream);
  fourfold::device::copy_rows(to, 5, from, 4, 2, 0, stream);
  stream.ref().synchronize();
  CHECK(contents(target) ==
        std::vector<std::uint8_t>{0, 3, 4, 0, 0, 0, 7, 8, 0, 0, 0, 11, 12, 0, 0});
}

TEST_CASE("what is copied from pageable memory may be written over at once", "[buffer]") {
  const fourfold::device::Stream stream;
  const Buffer buffer(4);
  std::vector<std::uint8_t> source{1, 2, 3, 4};
  fourfold::device::copy(buffer.data(), source.data(), 4, stream);
  source.assign(4, 9);
  stream.ref().synchronize();
  CHECK(contents(buffer) == std::vector<std::uint8_t>{1, 2, 3, 4});
}

TEST_CASE("a copy into pageable memory ends before the call, with all before it", "[buffer]") {
  const fourfold::device::Stream stream;
  const Buffer buffer(4);
  const std::vector<std::uint8_t> source{1, 2, 3, 4};
  std::vector<std::uint8_t> target(4);
  fourfold::device::copy(buffer.data(), source.data(), 4, stream);
  fourfold::device::copy(target.data(), buffer.data(), 4, stream);
  CHECK(target == source);
}

TEST_CASE("memory of a stream moves with its owner, and ends once", "[buffer]") {
  const fourfold::device::Stream stream;
  fourfold::device::StreamBuffer empty;
  CHECK(empty.data() == nullptr);
  fourfold::device::StreamBuffer one(300, stream);
  void* const data = one.data();
  empty = std::move(one);
  CHECK(empty.data() == data);
  CHECK(empty.bytes() == 300);
  fourfold::device::zero(data, 300, stream);
  empty.give_back(stream);
  CHECK(empty.bytes() == 0);
  empty.give_back(stream);
  stream.ref().synchronize();
}
