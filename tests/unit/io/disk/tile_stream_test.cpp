// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "scratch_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/io/scratch_file.hpp>
#include <fourfold/io/tile_stream.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

using namespace fourfold;
using io::ScratchFile;
using io::TileStream;

namespace {

constexpr std::size_t page = ScratchFile::page_bytes;
constexpr std::size_t page_words = page / sizeof(std::uint32_t);

std::uint32_t* words(std::byte* address) {
  return reinterpret_cast<std::uint32_t*>(address);
}

/// Of pages [first, first + count) of two arrays.
TileStream::Tile tile(const ScratchFile& file, std::byte* a, std::byte* b, std::size_t first,
                      std::size_t count) {
  return {{file.offset_of(a + first * page), count * page},
          {file.offset_of(b + first * page), count * page}};
}

}  // namespace

TEST_CASE("tiles pass through memory in order, round after round", "[tile_stream]") {
  constexpr std::size_t pages = 23;
  const std::size_t slots = GENERATE(2, 3, 6, 40);
  const std::size_t most_pages = GENERATE(1, 5, 23);  // the last tile of five is ragged
  const harness::ScratchFolder folder;
  ScratchFile file(folder.path());
  CHECK(std::filesystem::is_empty(folder.path()));
  std::byte* const a = file.extend(pages * page);
  std::byte* const b = file.extend(pages * page - 100);
  CHECK(file.size_bytes() == 2 * pages * page);
  CHECK(std::all_of(words(a), words(a) + pages * page_words, [](auto word) { return word == 0; }));
  for (std::size_t i = 0; i < pages * page_words; ++i) {
    words(a)[i] = static_cast<std::uint32_t>(i);
  }
  file.release(a, pages * page);

  std::vector<TileStream::Tile> tiles;
  std::vector<std::size_t> tile_pages;
  for (std::size_t end = pages; end > 0; end -= tile_pages.back()) {  // from the back
    tile_pages.push_back(std::min(most_pages, end));
    tiles.push_back(tile(file, a, b, end - tile_pages.back(), tile_pages.back()));
  }
  std::vector<std::byte> memory(TileStream::memory_bytes(tiles, slots));
  {
    TileStream stream(file, tiles, memory);
    for (std::uint32_t round = 0; round < 3; ++round) {
      if (round == 1) {
        stream.read_ahead();
      }
      for (const std::size_t count : tile_pages) {
        std::uint32_t* const from_a = words(stream.next());
        std::uint32_t* const from_b = from_a + count * page_words;
        for (std::size_t i = 0; i < count * page_words; ++i) {
          from_b[i] += from_a[i] + round;
          from_a[i] += 1;
        }
        stream.write_back();
      }
      if (round == 1) {
        stream.synchronize();
        CHECK(words(a)[page_words] == page_words + 2);
      }
    }
    stream.synchronize();
  }
  bool right = true;
  for (std::size_t i = 0; i < pages * page_words; ++i) {
    const auto value = static_cast<std::uint32_t>(i);
    right = right && words(a)[i] == value + 3 && words(b)[i] == 3 * value + 3 + 3;
  }
  CHECK(right);
}

TEST_CASE("a disk that fails under a stream is told with the place", "[tile_stream]") {
  const harness::ScratchFolder folder;
  ScratchFile file(folder.path());
  std::byte* const a = file.extend(8 * page);
  std::vector<TileStream::Tile> tiles;
  for (std::size_t i = 0; i < 8; ++i) {
    tiles.push_back({{file.offset_of(a + i * page), page}});
  }
  std::vector<std::byte> memory(TileStream::memory_bytes(tiles, 2));
  TileStream stream(file, tiles, memory);
  stream.next();
  stream.write_back();
  REQUIRE(::ftruncate(file.descriptor(), static_cast<off_t>(5 * page)) == 0);
  std::string told;
  try {
    for (int i = 0; i < 7; ++i) {
      stream.next();
      stream.write_back();
    }
  } catch (const SystemError& error) {
    CHECK(error.code() == ExitCode::node_fault);
    told = error.what();
  }
  CHECK(told.find("read 0 of 4096 bytes at byte 20480") != std::string::npos);
  CHECK(told.find(folder.path().string()) != std::string::npos);
}

TEST_CASE("scratch space that cannot be had is refused with the reason", "[scratch_file]") {
  const harness::ScratchFolder folder;
  const auto refusal = [](const std::filesystem::path& path, std::size_t bytes) -> std::string {
    try {
      ScratchFile(path).extend(bytes);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(refusal(folder.path(), page).empty());
  CHECK(refusal(folder.path() / "absent", page).find("No such file") != std::string::npos);
  std::ofstream(folder.path() / "file") << "text";
  CHECK(refusal(folder.path() / "file", page).find("is not a directory") != std::string::npos);
  const std::string full = refusal(folder.path(), std::size_t{1} << 50);
  CHECK(full.find("1.0 PiB") != std::string::npos);
  CHECK(full.find("posix_fallocate") != std::string::npos);
}
