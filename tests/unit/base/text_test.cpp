// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/log.hpp>
#include <fourfold/base/text.hpp>

#include <catch2/catch_test_macros.hpp>

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

using fourfold::printable;
using fourfold::printable_lines;
using fourfold::utf8_character_bytes;
using fourfold::xml_escaped;

TEST_CASE("characters are as long as UTF-8 says, and what is none is 0", "[text]") {
  CHECK(utf8_character_bytes("") == 0);
  CHECK(utf8_character_bytes(std::string_view("\0x", 2)) == 1);
  CHECK(utf8_character_bytes("\x7f") == 1);
  // The first and the last character of each length.
  CHECK(utf8_character_bytes("\xc2\x80x") == 2);
  CHECK(utf8_character_bytes("\xdf\xbf") == 2);
  CHECK(utf8_character_bytes("\xe0\xa0\x80") == 3);
  CHECK(utf8_character_bytes("\xef\xbf\xbf") == 3);
  CHECK(utf8_character_bytes("\xf0\x90\x80\x80") == 4);
  CHECK(utf8_character_bytes("\xf4\x8f\xbf\xbf") == 4);
  // Cut, continued by what does not continue, overlong, surrogates, beyond the last plane.
  for (const std::string_view bad :
       {"\x80", "\xc2", "\xc2\x41", "\xe2\x82", "\xe2\x82\x41", "\xf0\x9f\x98", "\xc0\x80",
        "\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf", "\xed\xa0\x80", "\xed\xbf\xbf",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff"}) {
    CAPTURE(printable(bad));
    CHECK(utf8_character_bytes(bad) == 0);
  }
}

TEST_CASE("text for XML has entities, and nothing that XML does not allow", "[text]") {
  CHECK(xml_escaped("a <b> & \"c\" 'd'") == "a &lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;");
  CHECK(xml_escaped("tab\t line\n \u00e9\u20ac\U0001f600") ==
        "tab\t line\n \u00e9\u20ac\U0001f600");
  CHECK(xml_escaped(std::string_view("\0\x1b\r\x7f", 4)) == "\ufffd\ufffd\ufffd\ufffd");
  CHECK(xml_escaped("a\xff\xe2\x82z") == "a\ufffd\ufffd\ufffdz");
  CHECK(xml_escaped("\xef\xbf\xbe \xf0\x9f\xbf\xbf \xef\xbf\xbd") == "\ufffd \ufffd \ufffd");
  CHECK(xml_escaped("\u07fe\ufffc\u0fff") == "\u07fe\ufffc\u0fff");
}

TEST_CASE("text for a terminal shows what would move its cursor", "[text]") {
  CHECK(printable("F0, \u00e9 'x' \\") == "F0, \u00e9 'x' \\");
  CHECK(printable(std::string_view("a\0b\n\x1b[2J", 8)) == "a\\u0000b\\u000a\\u001b[2J");
  CHECK(printable("\xff\xc2\x9bz\x7f\xe2\x82") == "\\xff\\u009bz\\u007f\\xe2\\x82");
  CHECK(printable("").empty());
}

TEST_CASE("text for a terminal keeps its direction", "[text]") {
  for (const auto& [character, shown] : std::initializer_list<std::pair<const char*, const char*>>{
           {"\u202a", "\\u202a"},
           {"\u202e", "\\u202e"},
           {"\u2066", "\\u2066"},
           {"\u2069", "\\u2069"},
           {"\u2029", "\u2029"},
           {"\u202f", "\u202f"},
           {"\u2065", "\u2065"},
           {"\u206a", "\u206a"},
           {"\u05d0\u200f", "\u05d0\u200f"}}) {
    CHECK(printable(character) == shown);
    CHECK(printable_lines(character) == shown);
  }
}

TEST_CASE("lines for a terminal keep their ends and tabs, and nothing else of the kind", "[text]") {
  CHECK(printable_lines("a\tb\nc\r\n\x1b]0;x\x07") == "a\tb\nc\\u000d\n\\u001b]0;x\\u0007");
  std::string all;
  for (int byte = 0; byte < 256; ++byte) {
    all += static_cast<char>(byte);
    all += "\xc2";
    all += static_cast<char>(byte);
  }
  const std::string shown = printable_lines(all);
  CHECK(shown.find_first_of("\x1b\x07\x08\r\x7f\v\f\x0e") == std::string::npos);
  for (std::size_t at = 0; at < shown.size();) {
    const std::size_t bytes = utf8_character_bytes(std::string_view(shown).substr(at));
    REQUIRE(bytes > 0);
    REQUIRE((bytes > 1 || shown[at] >= ' ' || shown[at] == '\n' || shown[at] == '\t'));
    REQUIRE((shown[at] != '\xc2' || static_cast<unsigned char>(shown[at + 1]) >= 0xa0));
    at += bytes;
  }
  CHECK(printable_lines(shown) == shown);
}
