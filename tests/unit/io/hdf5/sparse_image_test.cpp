// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "hdf5/sparse_image.hpp"

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace fourfold::io {
namespace {

constexpr std::uint64_t page = SparseImage::page_bytes;

TEST_CASE("a sparse image reads as the bytes that were written, zeros elsewhere",
          "[sparse_image]") {
  constexpr std::uint64_t all = 9 * page + 17;
  std::vector<std::byte> expected(all);
  SparseImage image;
  std::mt19937_64 random(7);
  for (int i = 0; i < 40; ++i) {
    const std::uint64_t offset = random() % all;
    std::vector<std::byte> bytes(random() % std::min(2 * page + 3, all - offset));
    std::ranges::generate(bytes, [&] { return std::byte(random() % 256); });
    image.write(offset, bytes);
    std::ranges::copy(bytes, expected.begin() + static_cast<std::ptrdiff_t>(offset));
    std::vector<std::byte> read(all, std::byte{1});
    image.read(0, read);
    REQUIRE(read == expected);
    std::vector<std::byte> part(random() % (all - offset), std::byte{1});
    image.read(offset, part);
    REQUIRE(std::equal(part.begin(), part.end(),
                       expected.begin() + static_cast<std::ptrdiff_t>(offset)));
  }
}

TEST_CASE("a sparse image has the pages that were written, and no others", "[sparse_image]") {
  SparseImage image;
  image.write(3 * page - 1, std::vector<std::byte>(2, std::byte{5}));
  image.write(1000 * page, {});
  CHECK(image.size_bytes() == 0);
  REQUIRE(image.pages().size() == 2);
  CHECK(image.pages().at(2).back() == std::byte{5});
  CHECK(image.pages().at(3).front() == std::byte{5});
  CHECK(image.pages().at(3)[1] == std::byte{0});
}

}  // namespace
}  // namespace fourfold::io
