// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/data/prepare.hpp>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace fourfold::data::detail {

/// Called with a document of an input file: where it begins there, and the first byte after it and
/// its separator.
using VisitDocument =
    std::function<void(std::string_view text, std::size_t begin_byte, std::size_t end_byte)>;

/// How the documents of an input file are to be read: as `options` say, or as its content tells.
/// Never InputFormat::automatic.
/// @throws UserError (config) for a file of another kind, or one that could be meant in two ways,
///   naming it and what to do
InputFormat format_of(const std::filesystem::path& file, std::string_view text,
                      const PrepareOptions& options);

/// For a tokenizer of text: @throws UserError (config) where much of the beginning is not UTF-8, as
/// of another encoding, or of a binary file without a sign of its kind
void refuse_other_encoding(const std::filesystem::path& file, std::string_view text);

/// Whether a text of several lines begins like JSON lines, or is another form of JSON.
enum class JsonShape { none, lines, document };
JsonShape json_shape(std::string_view text);

/// The documents of a text: all of it, or what stands between separators.
void for_each_document(std::string_view text, const std::optional<std::string>& separator,
                       const VisitDocument& visit);

/// The documents of a file of JSON lines: the "text" of each line that is not blank.
/// @throws UserError (data_corrupt) naming file and line
void for_each_json_line(const std::filesystem::path& file, std::string_view text,
                        const VisitDocument& visit);

}  // namespace fourfold::data::detail
