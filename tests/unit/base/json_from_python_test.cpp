// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/json_text.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <nlohmann/json.hpp>

#include <string>

using fourfold::json_from_python;
using nlohmann::json;

TEST_CASE("what Python writes beside the standard becomes standard", "[json_from_python]") {
  const auto [python, standard] = GENERATE(table<std::string, std::string>({
      {R"({"a": NaN, "b": [Infinity,-Infinity]})",
       R"({"a": "NaN", "b": ["Infinity","-Infinity"]})"},
      {R"([1e999, -2.5E+400, 1e308])", R"(["1e999", "-2.5E+400", 1e308])"},
      {R"(["\ud800", "\udc00x", "\ud83d\ude00", "\ud83d\ud83d\ude00"])",
       R"(["\ufffd", "\ufffdx", "\ud83d\ude00", "\ufffd\ud83d\ude00"])"},
  }));
  CHECK(json_from_python(python) == standard);
  CHECK_FALSE(fourfold::json_if_any<json>(standard).is_discarded());
}

TEST_CASE("all else stays as it is", "[json_from_python]") {
  const std::string text = GENERATE(
      std::string(R"({"NaN": "Infinity", "x": "a\"NaN", "n": [-0.0, 12, true, null, 1E-400]})"),
      std::string(R"("unfinished \)"), std::string(R"("unfinished \u12)"), std::string("[NaNs]"),
      std::string("\"\\\\\" 0x1p9999"), std::string("\0\xff", 2), std::string());
  CHECK(json_from_python(text) == text);
}
