// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/device/buffer.hpp>
#include <fourfold/device/process_memory.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <memory>
#include <vector>

// AddressSanitizer's allocator keeps what is freed, and takes memory of its own.
#ifndef __SANITIZE_ADDRESS__

using fourfold::device::Buffer;
using fourfold::device::MemoryKind;
using fourfold::device::MemoryWatch;

TEST_CASE("memory that was taken since is seen, and remembered", "[memory_watch]") {
  constexpr std::size_t bytes = std::size_t{64} << 20;
  constexpr std::size_t noise = std::size_t{2} << 20;
  const Buffer before(bytes, MemoryKind::host);
  MemoryWatch watch;
  watch.look();
  CHECK(watch.peak_bytes() < noise);
  {
    const Buffer buffer(bytes, MemoryKind::host);
    watch.look();
  }
  watch.look();
  CHECK(watch.peak_bytes() > bytes - noise);
  CHECK(watch.peak_bytes() < bytes + noise);
}

TEST_CASE("large blocks go back when they are freed, whatever was freed before", "[memory_watch]") {
  constexpr std::size_t mib = std::size_t{1} << 20;
  fourfold::device::keep_heap_small();
  std::vector<char>(30 * mib, 'x').clear();  // from here on a block of 20 MiB would be heap
  MemoryWatch watch;
  auto block = std::make_unique<std::vector<char>>(20 * mib, 'x');
  const std::vector<char> after_it(1000, 'x');  // holds the room of what lies before it
  block.reset();
  watch.look();
  CHECK(watch.peak_bytes() < 2 * mib);
  CHECK(after_it[999] == 'x');
}

TEST_CASE("what was freed in small pieces can be given back", "[memory_watch]") {
  constexpr std::size_t mib = std::size_t{1} << 20;
  MemoryWatch watch;
  std::vector<std::vector<char>> pieces;
  for (std::size_t i = 0; i < 64; ++i) {
    pieces.emplace_back(mib, 'x');
  }
  const std::vector<char> last(1000, 'x');
  pieces.clear();
  fourfold::device::return_freed_memory();
  watch.look();
  CHECK(watch.peak_bytes() < 4 * mib);
  CHECK(last[999] == 'x');
}

#endif
