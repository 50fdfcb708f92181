// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Text of unknown origin (names, cells, notes from files), made fit for where it is shown.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace fourfold {

/// Bytes of the valid UTF-8 character that `text` begins with (Unicode table 3-7: no overlong
/// forms, no surrogates, nothing above U+10FFFF); 0: none, or `text` is empty.
std::size_t utf8_character_bytes(std::string_view text) noexcept;

/// Whether all of it is valid UTF-8: what may stand in a file of TOML or JSON.
bool is_utf8(std::string_view text) noexcept;

/// For content and attributes of HTML and XML: & < > " ' as entities; what XML does not allow
/// (control characters but tab and line feed, bytes that are not UTF-8, noncharacters) as U+FFFD.
std::string xml_escaped(std::string_view text);

/// For a terminal or a log: as `\u001b` what may move the cursor, end the text or turn its way
/// (controls, bidirectional overrides), as `\xff` a byte that is not UTF-8, else what it is.
std::string printable(std::string_view text);

/// Damerau-Levenshtein distance (optimal string alignment): insertions, deletions, substitutions,
/// swaps of neighbours.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The known word nearest to `typed` when it is at most two edits away: "did you mean ...?".
std::optional<std::string> nearest(std::string_view typed, std::span<const std::string> known);

/// The only known word that begins with `typed`: "eval_every_steps" for "eval_every". Else the
/// nearest.
std::optional<std::string> likely(std::string_view typed, std::span<const std::string> known);

/// `word` as one word of a POSIX shell, whatever is in it: in single quotes, with those in it as
/// '\''.
inline std::string shell_word(std::string_view word) {
  std::string text = "'";
  for (const char c : word) {
    text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return text + "'";
}

}  // namespace fourfold
