// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/process_identity.hpp>

#include <catch2/catch_test_macros.hpp>

#include <vector>

TEST_CASE("ranks are told in runs", "[rank_identity]") {
  CHECK(fourfold::ranks_text(std::vector{5}) == "rank 5");
  CHECK(fourfold::ranks_text(std::vector{0, 1, 2, 4, 6, 7}) == "ranks 0-2, 4, 6-7");
  CHECK(fourfold::ranks_text({}) == "ranks ");
  CHECK(fourfold::ranges_text(std::vector{3, 5, 6, 7}) == "3, 5-7");
}
