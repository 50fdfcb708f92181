// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/log.hpp>
#include <fourfold/base/text.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

namespace fourfold {

namespace {

/// ASCII's control characters and those of Latin 1. @param character  valid UTF-8
bool is_control(std::string_view character) {
  const auto byte = [&](std::size_t i) -> unsigned char { return character[i]; };
  return character.size() == 1 ? byte(0) < 0x20 || byte(0) == 0x7F
                               : byte(0) == 0xC2 && byte(1) < 0xA0;
}

/// Unicode's explicit directional formatting (UAX 9, 2.1 to 2.4): U+202A to U+202E and U+2066 to
/// U+2069. @param character  valid UTF-8
bool turns_direction(std::string_view character) {
  return (character >= "\u202a" && character <= "\u202e") ||
         (character >= "\u2066" && character <= "\u2069");
}

/// The scalar value. @param character  valid UTF-8 of at most three bytes
unsigned code_point(std::string_view character) {
  const auto byte = [&](std::size_t i) -> unsigned char { return character[i]; };
  switch (character.size()) {
    case 1:
      return byte(0);
    case 2:
      return (byte(0) & 0x1FU) << 6 | (byte(1) & 0x3FU);
    default:
      return (byte(0) & 0x0FU) << 12 | (byte(1) & 0x3FU) << 6 | (byte(2) & 0x3FU);
  }
}

/// @param kept  control characters that stay as they are
std::string printable(std::string_view text, std::string_view kept) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::string_view character = text.substr(0, utf8_character_bytes(text));
    if (character.empty()) {
      const unsigned char byte = text.front();
      out += fmt::format("\\x{:02x}", byte);
    } else if (turns_direction(character) ||
               (is_control(character) && kept.find(character) == std::string_view::npos)) {
      out += fmt::format("\\u{:04x}", code_point(character));
    } else {
      out += character;
    }
    text.remove_prefix(std::max<std::size_t>(character.size(), 1));
  }
  return out;
}

/// U+FFFE and U+FFFF, and their like in other planes. @param character  valid UTF-8
bool is_noncharacter(std::string_view character) {
  const auto from_end = [&](std::size_t i) -> unsigned char {
    return character[character.size() - i];
  };
  return character.size() >= 3 && from_end(1) >= 0xBE && from_end(2) == 0xBF &&
         (from_end(3) & 0x0FU) == 0x0F;
}

std::string_view entity_of(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return {};
  }
}

}  // namespace

std::size_t utf8_character_bytes(std::string_view text) noexcept {
  const auto at = [&](std::size_t i) -> unsigned char { return text[i]; };
  if (text.empty() || at(0) < 0x80) {
    return text.empty() ? 0 : 1;
  }
  const unsigned lead = at(0);
  const std::size_t bytes = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) {
    return 0;
  }
  const unsigned second_lowest = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned second_highest = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (at(1) < second_lowest || at(1) > second_highest) {
    return 0;
  }
  for (std::size_t i = 2; i < bytes; ++i) {
    if ((at(i) & 0xC0U) != 0x80U) {
      return 0;
    }
  }
  return bytes;
}

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const std::size_t bytes = utf8_character_bytes(text);
    if (bytes == 0) {
      return false;
    }
    text.remove_prefix(bytes);
  }
  return true;
}

std::string xml_escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::string_view character = text.substr(0, utf8_character_bytes(text));
    const bool allowed =
        !character.empty() && !is_noncharacter(character) &&
        (!is_control(character) || character == "\n" || character == "\t" || character.size() > 1);
    const std::string_view entity = entity_of(text.front());
    out += !allowed ? "\xef\xbf\xbd" : entity.empty() ? character : entity;
    text.remove_prefix(std::max<std::size_t>(character.size(), 1));
  }
  return out;
}

std::string printable(std::string_view text) {
  return printable(text, "");
}

std::string printable_lines(std::string_view text) {
  return printable(text, "\n\t");
}

std::string printable_message(std::string_view text) {
  std::string out;
  while (true) {
    const std::size_t end = text.find("\n  ");
    out += printable(text.substr(0, end), "\t");
    if (end == std::string_view::npos) {
      return out;
    }
    out += '\n';
    text.remove_prefix(end + 1);
  }
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  const std::size_t columns = b.size() + 1;
  std::vector<std::size_t> table((a.size() + 1) * columns);
  const auto at = [&](std::size_t i, std::size_t j) -> std::size_t& {
    return table[i * columns + j];
  };
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        at(i, j) = i + j;
        continue;
      }
      const std::size_t substitution = at(i - 1, j - 1) + (a[i - 1] == b[j - 1] ? 0 : 1);
      at(i, j) = std::min({at(i - 1, j) + 1, at(i, j - 1) + 1, substitution});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
      }
    }
  }
  return at(a.size(), b.size());
}

std::optional<std::string> nearest(std::string_view typed, std::span<const std::string> known) {
  std::optional<std::string> best;
  std::size_t best_distance = 3;
  for (const std::string& word : known) {
    const std::size_t distance = edit_distance(typed, word);
    if (distance < best_distance && distance < word.size()) {
      best = word;
      best_distance = distance;
    }
  }
  return best;
}

std::optional<std::string> likely(std::string_view typed, std::span<const std::string> known) {
  std::vector<std::string> longer;
  std::ranges::copy_if(known, std::back_inserter(longer),
                       [&](const std::string& word) { return word.starts_with(typed); });
  return longer.size() == 1 ? longer.front() : nearest(typed, known);
}

}  // namespace fourfold
