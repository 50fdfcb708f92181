// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "unicode/unicode_text.hpp"

#include <catch2/catch_test_macros.hpp>

#include <string>

namespace fourfold::data::detail {
namespace {

std::string normal(NormalForm form, const std::string& text) {
  std::string result = "as it was";
  return normalize(form, text, result) ? result : text;
}

TEST_CASE("normal forms are those of Unicode's annex 15", "[unicode]") {
  using enum NormalForm;
  CHECK(normal(nfc, "e\u0301") == "\u00e9");
  CHECK(normal(nfd, "\u00e9") == "e\u0301");
  CHECK(normal(nfc, "\u212b") == "\u00c5");  // the unit is the letter
  CHECK(normal(nfd, "\u1e69") == "s\u0323\u0307");
  CHECK(normal(nfc, "s\u0307\u0323") == "\u1e69");  // marks below go first
  CHECK(normal(nfd, "\ud55c") == "\u1112\u1161\u11ab");
  CHECK(normal(nfc, "\u1112\u1161\u11ab") == "\ud55c");
  CHECK(normal(nfc, "\ufb01") == "\ufb01");
  CHECK(normal(nfkc, "\ufb01 2\u2075") == "fi 25");
  CHECK(normal(nfkd, "\u1e9b\u0323") == "s\u0323\u0307");
  CHECK(normal(nfkc, "\u1e9b\u0323") == "\u1e69");
  std::string untouched = "as it was";
  CHECK_FALSE(normalize(nfc, "plain ASCII", untouched));
  CHECK(untouched == "as it was");
}

TEST_CASE("the normal form of a beginning has a size of its own", "[unicode]") {
  CHECK(normal_size_of_first(NormalForm::nfc, "e\u0301x", 3) == 2);
  CHECK(normal_size_of_first(NormalForm::nfd, "\u00e9x", 2) == 3);
}

TEST_CASE("characters are folded and made small as Unicode's tables say", "[unicode]") {
  CHECK(case_fold(U'A') == U"a");
  CHECK(case_fold(U'\u00df') == U"ss");
  CHECK(case_fold(U'\u03c2') == U"\u03c3");
  CHECK(case_fold(U'\ufb03') == U"ffi");
  std::string lower;
  lower_case("\u0391\u03a3 \u00c9", lower);
  CHECK(lower == "\u03b1\u03c3 \u00e9");
  CHECK(folding_to_several(U'a', U'\u00ff') == U'\u00df');
  CHECK_FALSE(folding_to_several(U'a', U'z').has_value());
  CHECK(folding_to_end_of(U"misS").has_value());
  CHECK_FALSE(folding_to_end_of(U"mix").has_value());
}

TEST_CASE("white space and words are Unicode's", "[unicode]") {
  CHECK(is_white_space(U'\u3000'));
  CHECK(is_white_space(U'\u0085'));
  CHECK_FALSE(is_white_space(U'\u200b'));
  CHECK(is_word_character(U'_'));
  CHECK(is_word_character(U'\u0301'));
  CHECK(is_word_character(U'\u200d'));
  CHECK_FALSE(is_word_character(U'-'));
  CHECK_FALSE(is_word_character(U'\u00b2'));  // a digit, and no decimal one
}

TEST_CASE("characters are taken from both ends of a text, and put back", "[unicode]") {
  const std::string text = "a\u00e9\u20ac\U0001f600";
  std::string_view left = text;
  std::string again;
  for (const std::size_t bytes : {1, 2, 3, 4}) {
    CHECK(size_of_first_character(left) == bytes);
    append_character(take_character(left), again);
  }
  CHECK(left.empty());
  CHECK(again == text);
  CHECK(last_character(text) == U'\U0001f600');
  CHECK(last_character("a\u00e9") == U'\u00e9');
}

TEST_CASE("bytes that are no UTF-8 are found by Unicode's table 3-7", "[unicode]") {
  CHECK(valid_utf8_prefix("\u20ac\xe2\x82") == 3);
  CHECK(valid_utf8_prefix("\xc0\xaf") == 0);          // overlong
  CHECK(valid_utf8_prefix("a\xed\xa0\x80") == 1);     // a surrogate
  CHECK(valid_utf8_prefix("\xf4\x90\x80\x80") == 0);  // above U+10FFFF
  CHECK(invalid_utf8_prefix("\xff\xfe\u00e9") == 2);
  CHECK(invalid_utf8_prefix("a\xff") == 0);
  CHECK(invalid_utf8_prefix("") == 0);
  CHECK(invalid_utf8_bytes("a\xff\u00e9\xc3") == 2);
  CHECK(begun_utf8_suffix("a\xe2\x82") == 2);
  CHECK(begun_utf8_suffix("a\xff") == 0);
  CHECK(begun_utf8_suffix("\u20ac") == 0);
}

}  // namespace
}  // namespace fourfold::data::detail
