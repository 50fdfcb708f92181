// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/json_text.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <optional>

namespace fourfold::json_detail {

std::string at_byte(std::string_view text, std::size_t byte, const std::string& what) {
  const std::string_view before = text.substr(0, byte > 0 ? byte - 1 : 0);
  return fmt::format("line {}, byte {}: {}", 1 + std::ranges::count(before, '\n'), byte, what);
}

std::string reason_in(std::string_view message) {
  const std::size_t bracket =
      message.starts_with('[') ? message.find("] ") : std::string_view::npos;
  return std::string(bracket == std::string_view::npos ? message : message.substr(bracket + 2));
}

}  // namespace fourfold::json_detail

namespace fourfold {

bool is_json_deeper_than(int most, std::string_view text) noexcept {
  int depth = 0;
  bool is_in_text = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_in_text) {
      i += c == '\\' ? 1 : 0;  // whatever follows does not end the text
      is_in_text = c != '"';
    } else if (c == '"') {
      is_in_text = true;
    } else if ((c == '[' || c == '{') && ++depth > most) {
      return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

}  // namespace fourfold

namespace fourfold {
namespace {

constexpr std::size_t escape_chars = 6;  // \u1234

bool is_part_of_word(char c) noexcept {
  return ('0' <= c && c <= '9') || ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || c == '+' ||
         c == '-' || c == '.';
}

bool is_not_finite(const std::string& word) {
  if (word == "NaN" || word == "Infinity" || word == "-Infinity") {
    return true;
  }
  if (word.find_first_not_of("+-.0123456789eE") != std::string::npos) {
    return false;
  }
  char* end = nullptr;
  const double number = std::strtod(word.c_str(), &end);
  return *end == '\0' && (number > 1.0 || number < -1.0) && number == 2 * number;
}

/// The UTF-16 unit of an escape that `text` begins with.
std::optional<unsigned> escaped_unit(std::string_view text) noexcept {
  unsigned unit = 0;
  if (text.size() < escape_chars || !text.starts_with("\\u")) {
    return std::nullopt;
  }
  const char* const end = text.data() + escape_chars;
  const auto [stop, failure] = std::from_chars(text.data() + 2, end, unit, 16);
  return failure == std::errc() && stop == end ? std::optional(unit) : std::nullopt;
}

/// Copies the escape that `text` begins with. @return its characters
std::size_t copy_escape(std::string_view text, std::string& out) {
  const auto is_in = [](std::optional<unsigned> unit, unsigned first) {
    return unit && *unit >= first && *unit < first + 0x400;
  };
  const std::optional<unsigned> unit = escaped_unit(text);
  if (is_in(unit, 0xD800) && is_in(escaped_unit(text.substr(escape_chars)), 0xDC00)) {
    out += text.substr(0, 2 * escape_chars);
    return 2 * escape_chars;
  }
  if (is_in(unit, 0xD800) || is_in(unit, 0xDC00)) {
    out += "\\ufffd";
    return escape_chars;
  }
  out += text.substr(0, 2);
  return std::min<std::size_t>(2, text.size());
}

/// Copies the text in quotes that `text` begins with. @return its characters
std::size_t copy_quoted(std::string_view text, std::string& out) {
  out += '"';
  std::size_t at = 1;
  while (at < text.size() && text[at] != '"') {
    if (text[at] == '\\') {
      at += copy_escape(text.substr(at), out);
    } else {
      out += text[at++];
    }
  }
  if (at < text.size()) {
    out += text[at++];
  }
  return at;
}

}  // namespace

std::string json_from_python(std::string_view text, NotFinite as) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    std::size_t size = 1;
    if (text.front() == '"') {
      size = copy_quoted(text, out);
    } else if (is_part_of_word(text.front())) {
      while (size < text.size() && is_part_of_word(text[size])) {
        ++size;
      }
      const std::string word(text.substr(0, size));
      out += !is_not_finite(word) ? word : as == NotFinite::null ? "null" : '"' + word + '"';
    } else {
      out += text.front();
    }
    text.remove_prefix(size);
  }
  return out;
}

}  // namespace fourfold
