// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/amount.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cmath>

TEST_CASE("counts and bytes become real numbers", "[amount]") {
  CHECK(fourfold::ratio(3, 4) == 0.75);
  CHECK(std::isnan(fourfold::ratio(0, 0)));
  CHECK(fourfold::mib(3 << 19) == 1.5);
  CHECK(fourfold::gib(std::int64_t{5} << 29) == 2.5);
}
