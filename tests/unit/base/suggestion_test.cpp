// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/text.hpp>

#include <catch2/catch_test_macros.hpp>

#include <string>
#include <vector>

TEST_CASE("edit distance counts insertions, deletions, substitutions and swaps", "[suggestion]") {
  CHECK(fourfold::edit_distance("", "abc") == 3);
  CHECK(fourfold::edit_distance("layers", "layers") == 0);
  CHECK(fourfold::edit_distance("layres", "layers") == 1);
  CHECK(fourfold::edit_distance("layer", "layers") == 1);
  CHECK(fourfold::edit_distance("kitten", "sitting") == 3);
}

TEST_CASE("nearest suggests only what is close", "[suggestion]") {
  const std::vector<std::string> known{"layers", "hidden", "heads", "kv_heads"};
  CHECK(fourfold::nearest("hiden", known) == "hidden");
  CHECK(fourfold::nearest("head", known) == "heads");
  CHECK_FALSE(fourfold::nearest("learning_rate", known).has_value());
  CHECK_FALSE(fourfold::nearest("x", std::vector<std::string>{"lr"}).has_value());
}

TEST_CASE("a beginning that only one word has is taken for it", "[suggestion]") {
  const std::vector<std::string> known{"eval_every_steps", "eval_batches", "steps"};
  CHECK(fourfold::likely("eval_every", known) == "eval_every_steps");
  CHECK(fourfold::likely("stpes", known) == "steps");
  CHECK_FALSE(fourfold::likely("eval", known).has_value());
}
