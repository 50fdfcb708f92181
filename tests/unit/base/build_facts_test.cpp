// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/build_facts.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>

TEST_CASE("a build knows how it came about", "[build_facts]") {
  const fourfold::BuildFacts& facts = fourfold::build_facts();
  CHECK(facts.version == FOURFOLD_EXPECTED_VERSION);
  CHECK(facts.contracts == (FOURFOLD_CONTRACTS != 0));
  CHECK_FALSE(facts.commit.empty());
  CHECK(facts.libraries.size() >= 11);
  for (const fourfold::LibraryFact& library : facts.libraries) {
    INFO(library.name);
    CHECK(std::ranges::any_of(library.version, [](char c) { return c >= '0' && c <= '9'; }));
  }
}
