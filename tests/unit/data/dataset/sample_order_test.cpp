// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/data/sample_order.hpp>

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

using fourfold::data::permuted;
using fourfold::data::shuffled_position;

TEST_CASE("a permutation hits every element once", "[sample_order]") {
  for (const std::int64_t size :
       {1,  2,  3,    4,    5,    7,    8,    9,     31,        32,
        33, 97, 1000, 1021, 1024, 1025, 4096, 65537, 1'000'003, 1'048'576}) {
    const auto permutation = [&](std::int64_t i) { return permuted(11, 2, size, i); };
    std::vector<bool> seen(static_cast<std::size_t>(size));
    std::int64_t distinct = 0;
    for (std::int64_t i = 0; i < size; ++i) {
      const std::int64_t image = permutation(i);
      REQUIRE((image >= 0 && image < size));
      distinct += seen[static_cast<std::size_t>(image)] ? 0 : 1;
      seen[static_cast<std::size_t>(image)] = true;
    }
    CHECK(distinct == size);
  }
}

TEST_CASE("a permutation of very many elements stays inside and tells them apart",
          "[sample_order]") {
  const std::int64_t size = 5'000'000'000'011;
  const auto permutation = [&](std::int64_t i) { return permuted(3, 0, size, i); };
  std::int64_t previous = -1;
  for (std::int64_t i = size - 1000; i < size; ++i) {
    const std::int64_t image = permutation(i);
    REQUIRE((image >= 0 && image < size));
    CHECK(image != previous);
    previous = image;
  }
}

// Where element 0 of 16 lands over 16,000 epochs: chi-square with 15 degrees of freedom, 99.99 %
// point 44.3.
TEST_CASE("every place is as likely as another", "[sample_order]") {
  constexpr std::int64_t size = 16;
  for (const std::int64_t element : {0, 5, 15}) {
    std::array<int, size> counts{};
    for (std::uint64_t epoch = 0; epoch < 16000; ++epoch) {
      ++counts[static_cast<std::size_t>(permuted(1234, epoch, size, element))];
    }
    double chi_square = 0;
    for (const int count : counts) {
      chi_square += (count - 1000.0) * (count - 1000.0) / 1000.0;
    }
    CHECK(chi_square < 44.3);
  }
}

// All 6 orders of 3 elements: chi-square with 5 degrees of freedom, 99.99 % point 25.7.
TEST_CASE("every order of three elements is as likely as another", "[sample_order]") {
  std::array<int, 9> counts{};
  for (std::uint64_t epoch = 0; epoch < 6000; ++epoch) {
    const auto permutation = [&](std::int64_t i) { return permuted(7, epoch, 3, i); };
    ++counts[static_cast<std::size_t>(permutation(0) * 3 + permutation(1))];
  }
  double chi_square = 0;
  for (const std::size_t order : {1, 2, 3, 5, 6, 7}) {
    chi_square += (counts[order] - 1000.0) * (counts[order] - 1000.0) / 1000.0;
  }
  CHECK(chi_square < 25.7);
}

// A shuffled order has neither the runs nor the drift of the file's own order.
TEST_CASE("neighbours are scattered", "[sample_order]") {
  constexpr std::int64_t size = 100'003;
  const auto permutation = [&](std::int64_t i) { return permuted(42, 0, size, i); };
  double products = 0;
  double squares = 0;
  int adjacent = 0;
  for (std::int64_t i = 0; i + 1 < size; ++i) {
    const double here = static_cast<double>(permutation(i)) - (size - 1) / 2.0;
    const double next = static_cast<double>(permutation(i + 1)) - (size - 1) / 2.0;
    products += here * next;
    squares += here * here;
    adjacent += std::abs(here - next) == 1 ? 1 : 0;
  }
  CHECK(std::abs(products / squares) < 4 / std::sqrt(static_cast<double>(size)));
  CHECK(adjacent < 14);  // Poisson with mean 2
}

TEST_CASE("an epoch visits every sample once and epochs and seeds differ", "[sample_order]") {
  const auto position = [](std::int64_t n) { return shuffled_position(5, 1000, n); };
  std::vector<int> visits(1000);
  int same_as_first = 0;
  int same_as_other_seed = 0;
  for (std::int64_t n = 0; n < 3000; ++n) {
    ++visits[static_cast<std::size_t>(position(n))];
    same_as_first += n >= 1000 && position(n) == position(n % 1000) ? 1 : 0;
    same_as_other_seed += position(n) == shuffled_position(6, 1000, n) ? 1 : 0;
  }
  CHECK(visits == std::vector<int>(1000, 3));
  CHECK(same_as_first < 12);       // mean 2
  CHECK(same_as_other_seed < 14);  // mean 3
  CHECK(position(999) == permuted(5, 0, 1000, 999));
  CHECK(position(1000) == permuted(5, 1, 1000, 0));
}

TEST_CASE("one sample is its own order", "[sample_order]") {
  CHECK(shuffled_position(9, 1, 0) == 0);
  CHECK(shuffled_position(9, 1, 123456789) == 0);
}

// Made by tests/golden/sample_order.py, a second implementation. A checkpoint remembers its place
// in the data as a sample number, so these numbers must never change.
TEST_CASE("the order is the one it has always been", "[sample_order]") {
  using Numbers = std::vector<std::int64_t>;
  const auto ten = [](std::uint64_t seed, std::int64_t size, std::int64_t first) {
    Numbers numbers;
    for (std::int64_t n = first; n < first + 10; ++n) {
      numbers.push_back(shuffled_position(seed, size, n));
    }
    return numbers;
  };
  CHECK(ten(1234, 10, 0) == Numbers{8, 4, 2, 0, 9, 7, 1, 5, 6, 3});
  CHECK(ten(1234, 10, 10) == Numbers{1, 8, 7, 9, 2, 3, 4, 5, 6, 0});
  CHECK(ten(42, 1000003, 0) ==
        Numbers{698892, 502774, 687797, 472602, 517611, 482429, 277214, 753520, 204527, 214525});
  CHECK(ten(42, 1000003, 5000000) ==
        Numbers{244037, 781671, 204437, 12963, 171465, 620647, 779078, 67979, 144902, 33936});
  CHECK(ten(7, 5000000000011, 4999999999990) ==
        Numbers{771574674650, 1770173044922, 2895553099410, 1140067197287, 454354513040,
                393135222168, 4199728059359, 4625973022307, 1768304531275, 2335185137873});
}
