// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What tokenizer files ask of Unicode, through utf8proc. All texts are valid UTF-8.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace fourfold::data::detail {

/// Unicode's White_Space, first and last code point of each run. It is `\s` of the `tokenizers`
/// library.
inline constexpr std::array<std::pair<char32_t, char32_t>, 10> white_space{{{0x09, 0x0D},
                                                                            {0x20, 0x20},
                                                                            {0x85, 0x85},
                                                                            {0xA0, 0xA0},
                                                                            {0x1680, 0x1680},
                                                                            {0x2000, 0x200A},
                                                                            {0x2028, 0x2029},
                                                                            {0x202F, 0x202F},
                                                                            {0x205F, 0x205F},
                                                                            {0x3000, 0x3000}}};

bool is_white_space(char32_t character) noexcept;

/// `\w` of Unicode's technical standard 18: Alphabetic, marks, decimal digits, connectors, joiners.
bool is_word_character(char32_t character) noexcept;

/// The inside of a [...] of PCRE2 that holds the same characters.
inline constexpr const char* word_character_ranges =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{200c}\x{200d}\x{24b6}-\x{24e9}\x{1f130}-\x{1f149})"
    R"(\x{1f150}-\x{1f169}\x{1f170}-\x{1f189})";

/// The character that a text begins with; its bytes are taken off the text. @pre not empty
inline char32_t take_character(std::string_view& text) noexcept {
  const auto byte = [&](std::size_t i) -> char32_t { return text[i] & 0xFF; };
  const auto trail = [&](std::size_t i) { return byte(i) & 0x3F; };
  const char32_t lead = byte(0);
  char32_t character = lead;
  std::size_t bytes = 1;
  if (lead >= 0xF0) {
    character = (lead & 0x07) << 18 | trail(1) << 12 | trail(2) << 6 | trail(3);
    bytes = 4;
  } else if (lead >= 0xE0) {
    character = (lead & 0x0F) << 12 | trail(1) << 6 | trail(2);
    bytes = 3;
  } else if (lead >= 0xC0) {
    character = (lead & 0x1F) << 6 | trail(1);
    bytes = 2;
  }
  text.remove_prefix(bytes);
  return character;
}
/// In bytes. @pre not empty
inline std::size_t size_of_first_character(std::string_view text) noexcept {
  const std::size_t all = text.size();
  take_character(text);
  return all - text.size();
}
/// The character that a text ends with. @pre not empty
char32_t last_character(std::string_view text) noexcept;
void append_character(char32_t character, std::string& text);

/// Each character in lower case by itself: a capital sigma becomes a small one, never a final one.
void lower_case(std::string_view text, std::string& lower);

/// Unicode's full case folding (C + F of CaseFolding.txt): one character for most, `ss` for `ß`.
std::u32string case_fold(char32_t character);

enum class NormalForm { nfc, nfd, nfkc, nfkd };

/// Puts one of Unicode's normal forms of `text` into `normal` and returns true; returns false, with
/// `normal` as it was, when nothing in the text can change.
///
/// The form is that of Unicode 9, which the `tokenizers` library (0.23) applies: characters that
/// were assigned later neither compose nor decompose nor change places. O(n log n).
bool normalize(NormalForm form, std::string_view text, std::string& normal);

/// How many bytes the normal form begins with that came of the first `bytes` bytes of `text`, as
/// the library counts it. @pre `bytes` is at the end of a character
std::size_t normal_size_of_first(NormalForm form, std::string_view text, std::size_t bytes);

// Characters whose case folding (Unicode's full one, C + F of CaseFolding.txt) has several, as `ß`
// is `ss`. Under (?i) Oniguruma matches either for the other, PCRE2 does not.

/// The first character from `first` to `last` that folds to several.
std::optional<char32_t> folding_to_several(char32_t first, char32_t last);

/// A character that folds to several, those that `text` ends with in whatever case: `ß` for "misS",
/// and for "ß". @pre text is not empty
std::optional<char32_t> folding_to_end_of(std::u32string_view text);

/// The longest prefix of `text` that is valid UTF-8 (Unicode table 3-7: no overlong forms, no
/// surrogates, nothing above U+10FFFF), in bytes.
std::size_t valid_utf8_prefix(std::string_view text);

/// The longest prefix in which no valid character begins, in bytes; 0 when `text` begins with one
/// or is empty.
std::size_t invalid_utf8_prefix(std::string_view text);

/// All bytes of `text` that belong to no valid character.
std::size_t invalid_utf8_bytes(std::string_view text);

/// The bytes at the end of `text` with which a character begins that further bytes can complete; 0
/// when there are none.
std::size_t begun_utf8_suffix(std::string_view text);

}  // namespace fourfold::data::detail
