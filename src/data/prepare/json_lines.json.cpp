// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "prepare/documents.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/json_text.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <utility>

namespace fourfold::data::detail {
namespace {

/// "line 7, byte 3: ...": the place that json_defect() tells is one in the line.
std::string defect_in(std::string_view line, std::size_t line_number) {
  constexpr std::string_view first_line = "line 1, ";
  const std::string defect = json_defect<nlohmann::json>(line);
  return defect.starts_with(first_line)
             ? format_message("line {}, {}", line_number, defect.substr(first_line.size()))
             : format_message("line {}: {}", line_number, defect);
}

/// Halves of surrogate pairs, which are no characters and which only Python writes.
std::size_t lone_halves(const std::string& text, std::string_view line) {
  constexpr std::string_view replacement = "\xef\xbf\xbd";
  std::size_t count = 0;
  for (std::size_t at = text.find(replacement); at != text.npos;
       at = text.find(replacement, at + replacement.size())) {
    ++count;
  }
  return line.find(replacement) == line.npos ? count : 0;
}

std::string text_of_line(const std::filesystem::path& file, std::size_t line_number,
                         std::string_view line) {
  auto document = json_if_any<nlohmann::json>(line);
  const bool is_pythons = document.is_discarded();
  if (is_pythons) {  // numbers that are none, as json.dumps writes them, beside the text
    document = json_if_any<nlohmann::json>(json_from_python(line, NotFinite::null));
  }
  if (!document.is_object() || !document.contains("text") || !document["text"].is_string()) {
    throw UserError(
        ExitCode::data_corrupt,
        format_message(
            "{}: {} (every line of a file of JSON lines must be an object with its document under "
            "\"text\"); mend or remove the line, or say --format=text if the file is plain text",
            file.string(),
            document.is_discarded() || (is_pythons && document.contains("text"))
                ? defect_in(line, line_number)
                : format_message("line {}: has no text under the key \"text\"", line_number)));
  }
  std::string text = std::move(document["text"].get_ref<std::string&>());
  if (const std::size_t halves = is_pythons ? lone_halves(text, line) : 0; halves > 0) {
    log::warning(format_message(
        "{}: line {}: {} halves of surrogate pairs are no characters, and became U+FFFD",
        file.string(), line_number, halves));
  }
  return text;
}

}  // namespace

void for_each_json_line(const std::filesystem::path& file, std::string_view text,
                        const VisitDocument& visit) {
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  std::size_t line_number = 1;
  for (std::size_t begin = text.starts_with(byte_order_mark) ? byte_order_mark.size() : 0;
       begin < text.size(); ++line_number) {
    const std::size_t line_end = std::min(text.find('\n', begin), text.size());
    const std::size_t next = std::min(line_end + 1, text.size());
    const std::string_view line = text.substr(begin, line_end - begin);
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) {
      const std::string content = text_of_line(file, line_number, line);
      visit(content, begin, next);
    }
    begin = next;
  }
}

}  // namespace fourfold::data::detail
