// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "prepare/documents.hpp"
#include "unicode/unicode_text.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/io/token_file.hpp>

#include <algorithm>
#include <span>

namespace fourfold::data::detail {
namespace {

/// Texts with NUL bytes between their documents are not binary for that.
bool is_separated_by_nul(const PrepareOptions& options) {
  return options.document_separator && options.document_separator->find('\0') != std::string::npos;
}

void refuse_other_kind(const std::filesystem::path& file, std::string_view text,
                       const PrepareOptions& options) {
  const auto kind = io::kind_of_content(std::as_bytes(std::span(text)));
  if (!kind || (kind->is_guess && is_separated_by_nul(options))) {
    return;
  }
  throw UserError(ExitCode::config,
                  format_message("{}: is {}, not plain text (its bytes would be tokenized as they "
                                 "are); {}, or say --format=text if that is what you want",
                                 file.string(), kind->name, kind->remedy));
}

}  // namespace

InputFormat format_of(const std::filesystem::path& file, std::string_view text,
                      const PrepareOptions& options) {
  if (options.format == InputFormat::text) {
    return InputFormat::text;
  }
  refuse_other_kind(file, text, options);
  if (options.format == InputFormat::json_lines || file.extension() == ".jsonl") {
    return InputFormat::json_lines;
  }
  switch (json_shape(text)) {
    case JsonShape::none:
      return InputFormat::text;
    case JsonShape::lines:
      log::info(
          format_message("{}: is read as JSON lines: each has a document under \"text\" "
                         "(--format=text takes the file as it is)",
                         file.string()));
      return InputFormat::json_lines;
    case JsonShape::document:
      break;
  }
  throw UserError(
      ExitCode::config,
      format_message("{}: is JSON, but not one object per line (which would be its documents?); "
                     "make JSON lines of it, for instance with jq -c '.[]' (a list) or jq -c . "
                     "(objects), or say --format=text to take it as plain text",
                     file.string()));
}

void refuse_other_encoding(const std::filesystem::path& file, std::string_view text) {
  constexpr std::size_t looked_at_bytes = std::size_t{64} << 10;
  constexpr std::size_t one_in = 10;  // Latin 1 of a European language has some five of a hundred
  text = text.substr(0, looked_at_bytes);
  const std::size_t all = text.size() - begun_utf8_suffix(text);
  const std::size_t odd = invalid_utf8_bytes(text);
  if (odd > 1 && odd * one_in > all) {
    throw UserError(
        ExitCode::config,
        format_message(
            "{}: {} of its first {} bytes are not UTF-8 (another encoding, or no text); make UTF-8 "
            "of it, for instance with iconv, or say --format=text if that is what you want",
            file.string(), odd, all));
  }
}

}  // namespace fourfold::data::detail
