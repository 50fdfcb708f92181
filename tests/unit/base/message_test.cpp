// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

using fourfold::format_message;
using fourfold::MadeLines;
using fourfold::printable_message;

namespace {

constexpr const char* forged = "a\nfourfold: error: b\r\n  c";
constexpr const char* shown = "a\\u000afourfold: error: b\\u000d\\u000a  c";

}  // namespace

TEST_CASE("no text from outside begins a line of a message", "[message]") {
  const std::string text = forged;
  const std::array<char, 3> characters = {'x', '\n', '\0'};
  for (const std::string& message : {format_message("{}", text), format_message("{}", forged),
                                     format_message("{}", std::string_view(text)),
                                     format_message("{}", std::filesystem::path(text).string())}) {
    CHECK(message == shown);
  }
  CHECK(format_message("{}", characters.data()) == "x\\u000a");
  CHECK(format_message("{0} {0:.3} {1:>5}|", text, "\n") == std::string(shown) + " a\\u \\u000a|");
}

TEST_CASE("the line feeds of a message's format stay", "[message]") {
  const std::vector<std::string> lines = {"a\nb", "c"};
  CHECK(format_message("one\n  {}", "two\n") == "one\n  two\\u000a");
  CHECK(format_message("of:\n  {}", fmt::join(lines, "\n  ")) == "of:\n  a\\u000ab\n  c");
  CHECK(format_message("{}: {}", "x\n", MadeLines{"one\n  two"}) == "x\\u000a: one\n  two");
}

TEST_CASE("what is no text stands in a message as fmt writes it", "[message]") {
  const std::vector<int> numbers = {1, 22};
  CHECK(format_message("{:>4}|{:.2f}|{}|{}", 7, 0.125, true, 'x') ==
        fmt::format("{:>4}|{:.2f}|{}|{}", 7, 0.125, true, 'x'));
  CHECK(format_message("{:02}", fmt::join(numbers, ", ")) == "01, 22");
}

TEST_CASE("a message in a message is not escaped again", "[message]") {
  CHECK(format_message("{}", format_message("{}", forged)) == shown);
}

TEST_CASE("a message has further lines only where they are indented", "[message]") {
  CHECK(printable_message("one\n  two\n  three") == "one\n  two\n  three");
  CHECK(printable_message("one\ntwo\n three\n") == "one\\u000atwo\\u000a three\\u000a");
  CHECK(printable_message("\n  a\n\n  b\t\x1b[2J") == "\n  a\\u000a\n  b\t\\u001b[2J");
  CHECK(printable_message("").empty());
}
