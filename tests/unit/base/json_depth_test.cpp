// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/json_text.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>

using namespace fourfold;

namespace {

/// As the parser of the library counts.
int depth_of(const std::string& text) {
  int deepest = 0;
  const auto look = [&](int depth, nlohmann::json::parse_event_t event, nlohmann::json& /*value*/) {
    using Event = nlohmann::json::parse_event_t;
    if (event == Event::array_start || event == Event::object_start) {
      deepest = std::max(deepest, depth + 1);
    }
    return true;
  };
  REQUIRE_FALSE(nlohmann::json::parse(text, look, false).is_discarded());
  return deepest;
}

}  // namespace

TEST_CASE("the depth of JSON is the one that a parser meets", "[json_depth]") {
  const std::string text =
      GENERATE(std::string("1"), R"("[[[[")", "[]", "[[],[[]],{}]", R"({"a": {"b": [1, "]"]}})",
               R"(["\"[[[", "\\", [1], "\\\"{", {"[": "{"}])", R"(["}", "]", [[[]]]])");
  CAPTURE(text);
  const int depth = depth_of(text);
  CHECK_FALSE(is_json_deeper_than(depth, text));
  CHECK((depth == 0 || is_json_deeper_than(depth - 1, text)));
}

TEST_CASE("a file of brackets is too deep, closed or not", "[json_depth]") {
  const std::string open(100'000, '[');
  CHECK(is_json_too_deep(open));
  CHECK(is_json_too_deep(open + std::string(open.size(), ']')));
  CHECK(is_json_too_deep(R"({"x": )" + open));
  CHECK_FALSE(is_json_too_deep(std::string(most_json_depth, '[')));
  CHECK_FALSE(is_json_too_deep("\"" + open + "\""));
}
