// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "vectors/divisor.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cstdint>

namespace {

using fourfold::kernels::Divisor;

constexpr std::int64_t limit = std::int64_t{1} << 31;

void check(std::int64_t divisor) {
  const Divisor by(divisor);
  CHECK(by.value() == divisor);
  // Where a quotient changes, and the largest numbers of either kind.
  for (const std::int64_t number :
       {std::int64_t{0}, std::int64_t{1}, divisor - 1, divisor, divisor + 1, 2 * divisor - 1,
        2 * divisor, (limit - 1) / divisor * divisor - 1, (limit - 1) / divisor * divisor,
        limit - 2, limit - 1, limit, limit + 1, 77 * limit + 1, 12345 * divisor - 1,
        12345 * divisor}) {
    if (number >= 0) {
      CAPTURE(divisor, number);
      REQUIRE(by.quotient(number) == number / divisor);
    }
  }
}

}  // namespace

TEST_CASE("a divisor known before divides as the operator does", "[divisor]") {
  for (std::int64_t divisor = 1; divisor < 5000; ++divisor) {
    check(divisor);
  }
  for (int bits = 2; bits < 34; ++bits) {
    for (const std::int64_t aside : {-1, 0, 1, 12345}) {
      check((std::int64_t{1} << bits) + aside);
    }
  }
  const Divisor by(768);
  for (std::int64_t number = 0; number < 3000000; ++number) {
    REQUIRE(by.quotient(number) == number / 768);
  }
}
