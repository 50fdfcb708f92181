// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "prepare/documents.hpp"

#include <fourfold/base/json_text.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>

namespace fourfold::data::detail {
namespace {

/// Whether a text has a member of an object, which no text has that is not JSON, before what is not
/// JSON; or is JSON without any.
bool begins_like_json(std::string_view text) {
  using Event = nlohmann::json::parse_event_t;
  bool is_after_key = false;
  bool found = false;
  JsonEvents<nlohmann::json> events([&](Event event, bool /*is_number*/) {
    const bool begins = event != Event::object_end && event != Event::array_end;
    found = is_after_key && begins;  // what follows a key
    is_after_key = is_after_key || event == Event::key;
    return !found;
  });
  return nlohmann::json::sax_parse(text, &events) || found;
}

constexpr std::string_view blanks = " \t\r\n";

std::string_view without_mark(std::string_view text) {
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  return text.starts_with(byte_order_mark) ? text.substr(byte_order_mark.size()) : text;
}

/// A whole value that begins with one of these characters, by itself; with what Python writes and
/// the standard has not (NaN).
bool is_value(std::string_view line, std::string_view first) {
  const std::size_t begin = line.find_first_not_of(blanks);
  return begin != std::string_view::npos && first.find(line[begin]) != std::string_view::npos &&
         !is_json_too_deep(line) &&
         (nlohmann::json::accept(line) || nlohmann::json::accept(json_from_python(line)));
}

/// Lists, or texts in quotes, one on a line: of the first lines that are not blank every one, and
/// more than one. Somebody's prose may have one such line.
bool are_values_on_lines(std::string_view text) {
  constexpr int most_lines = 4;
  int values = 0;
  while (!text.empty() && values < most_lines) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (line.find_first_not_of(blanks) != std::string_view::npos) {
      if (!is_value(line, "[\"")) {
        return false;
      }
      ++values;
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return values > 1;
}

/// Whether of the first lines that are not blank half or more are objects with a text: JSON lines
/// of which some are damaged, the first among them.
bool have_documents_on_lines(std::string_view text) {
  constexpr int most_lines = 64;
  int lines = 0;
  int documents = 0;
  while (!text.empty() && lines < most_lines) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (line.find_first_not_of(blanks) != std::string_view::npos) {
      ++lines;
      const bool may_be_one = line[line.find_first_not_of(blanks)] == '{' &&
                              line.find("\"text\"") != std::string_view::npos;
      documents += may_be_one && is_value(line, "{") ? 1 : 0;
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return documents > 0 && 2 * documents >= lines;
}

/// A "JSON text sequence" (RFC 7464) has a record separator before each.
bool is_sequence(std::string_view text) {
  constexpr char record_separator = '\x1e';
  return text.size() > 1 && text.front() == record_separator &&
         is_value(text.substr(1, text.find('\n') - 1), "{[\"");
}

}  // namespace

JsonShape json_shape(std::string_view text) {
  text = without_mark(text);
  if (are_values_on_lines(text) || is_sequence(text)) {
    return JsonShape::document;
  }
  if (have_documents_on_lines(text)) {
    return JsonShape::lines;
  }
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos || (text[begin] != '{' && text[begin] != '[')) {
    return JsonShape::none;
  }
  text.remove_prefix(begin);
  if (is_value(text.substr(0, text.find('\n')), "{")) {
    return JsonShape::lines;
  }
  return begins_like_json(text) ? JsonShape::document : JsonShape::none;
}

}  // namespace fourfold::data::detail
