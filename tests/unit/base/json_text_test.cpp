// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/base/json_text.hpp>

#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>

using namespace fourfold;
using nlohmann::json;
using nlohmann::ordered_json;

TEMPLATE_TEST_CASE("what is no JSON is refused with its place", "[json_text]", json, ordered_json) {
  const auto [text, defect] = GENERATE(table<std::string, std::string>({
      {R"({"a": 1e999})", "line 1, byte 7: 1e999 is a number that no double holds"},
      {"{\"a\":\n [2, -7.5e400]}", "line 2, byte 12: -7.5e400 is a number that no double holds"},
      {"[1,\n2,\nx]", "line 3, byte 8: is not JSON from here on"},
      {"", "line 1, byte 1: is not JSON from here on"},
      {"{} x", "line 1, byte 4: is not JSON from here on"},
      {"{\"\xff\":1}", "line 1, byte 3: is not JSON from here on"},
      {R"(["\ud800"])", "line 1, byte 9: is not JSON from here on"},
      {std::string("{}\n\0{", 5), "line 2, byte 4: is not JSON from here on"},
      {std::string(100'000, '['), "is nested too deep (64 levels are read)"},
      {"[NaN]", "line 1, byte 2: is not JSON from here on"},
  }));
  CAPTURE(text);
  CHECK(json_if_any<TestType>(text).is_discarded());
  CHECK(json_defect<TestType>(text) == defect);
  try {
    parse_json<TestType>(text, "dir/x.json", "make it again");
    FAIL("accepted");
  } catch (const UserError& error) {
    CHECK(error.code() == ExitCode::data_corrupt);
    CHECK(std::string(error.what()) == "dir/x.json: " + defect + "; make it again");
  }
}

TEST_CASE("what is JSON is taken, also with numbers at the end of what a double holds",
          "[json_text]") {
  CHECK(parse_json<json>("[1e308, -1e-999, 18446744073709551616]", "x")[1] == -0.0);
  CHECK(json_if_any<json>(" \"1e999\" ") == "1e999");
}

TEST_CASE("members that are missing or of another type are told without the library's number",
          "[json_text]") {
  const auto told = [](const char* text) {
    std::string why = "nothing";
    try {
      read_json(
          parse_json<json>(text, "x"), [](const json& value) { return value.at("a").get<int>(); },
          [&](const std::string& reason) {
            why = reason;
            throw UserError(ExitCode::config, reason);
          });
    } catch (const UserError& error) {
      CHECK(error.code() == ExitCode::config);
    }
    return why;
  };
  CHECK(told(R"({"a": 1})") == "nothing");
  CHECK(told(R"({"b": 1})") == "key 'a' not found");
  CHECK(told(R"({"a": []})") == "type must be number, but is array");
  CHECK(told("[]") == "cannot use at() with array");
}

TEST_CASE("a whole number of JSON is taken where its type holds it, and as what it is",
          "[json_text]") {
  const auto of = [](const char* text) { return parse_json<json>(text, "x"); };
  CHECK(whole_number_of<int>(of("-2147483648")) == std::numeric_limits<int>::min());
  CHECK(whole_number_of<std::uint64_t>(of("18446744073709551615")) == ~std::uint64_t{0});
  CHECK(whole_number_of<std::int64_t>(of("-9223372036854775808")) ==
        std::numeric_limits<std::int64_t>::min());
  CHECK(whole_number_if_any<int>(of("7"), 7, 7) == 7);
  for (const char* const text :
       {"2147483648", "-2147483649", "1e30", "3.5", "3.0", "-1e300", "18446744073709551615",
        "18446744073709551616", "\"3\"", "null", "true", "[3]", "{}"}) {
    CAPTURE(text);
    CHECK_FALSE(whole_number_if_any<int>(of(text)));
    CHECK_THROWS_AS(whole_number_of<int>(of(text)), json::exception);
  }
  for (const char* const text : {"-1", "4", "9223372036854775807"}) {
    CHECK_FALSE(whole_number_if_any<std::int64_t>(of(text), 0, 3));
  }
  CHECK_FALSE(whole_number_if_any<std::int64_t>(of("9223372036854775808")));
  CHECK_FALSE(whole_number_if_any<std::uint64_t>(of("-1")));
  std::string why;
  CHECK_THROWS_AS(read_json(
                      of("{\"a\": 3.5}"),
                      [](const json& value) { return whole_number_of<int>(value.at("a"), 0, 9); },
                      [&](const std::string& reason) {
                        why = reason;
                        throw UserError(ExitCode::config, reason);
                      }),
                  UserError);
  CHECK(why == "3.5 is no whole number from 0 to 9");
}

TEST_CASE("text that is not UTF-8 can be written", "[json_text]") {
  const ordered_json value{{"path", "lat\xe9/x"}, {"n", 1}};
  CHECK(json_text(value) == "{\"path\":\"lat\xef\xbf\xbd/x\",\"n\":1}");
  CHECK(json_text(value, 1) == "{\n \"path\": \"lat\xef\xbf\xbd/x\",\n \"n\": 1\n}");
}

TEST_CASE("an object of numbers is known from other JSON", "[json_text]") {
  for (const char* text : {R"({"a": 0})", " {\"a\": -1, \"b\": 1e3, \"model\": 7}\n"}) {
    CHECK(is_json_of_numbers<json>(text));
  }
  for (const char* text :
       {"", "{}", "7", "[1]", R"({"a": {"b": 1}})", R"({"a": 0, "b": "1"})", R"({"a": [1]})",
        R"({"a": 0, "b": null})", R"({"a": 0)", R"({"a": 0} x)", R"({"a": 1e999})"}) {
    CAPTURE(text);
    CHECK_FALSE(is_json_of_numbers<json>(text));
  }
}
