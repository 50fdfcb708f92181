// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace fourfold::data::detail {

/// One document of an input file.
struct Document {
  std::string_view text;
  std::size_t begin_byte;  ///< where it begins in the file
  std::size_t end_byte;    ///< first byte after it and its separator
};

using VisitDocument = std::function<void(const Document&)>;

/// The documents of a text: all of it, or what stands between separators.
void for_each_document(std::string_view text, const std::optional<std::string>& separator,
                       const VisitDocument& visit);

/// The documents of a .jsonl file: the "text" of each line that is not blank.
/// @throws UserError (data_corrupt) naming file and line
void for_each_json_line(const std::filesystem::path& file, std::string_view text,
                        const VisitDocument& visit);

}  // namespace fourfold::data::detail
