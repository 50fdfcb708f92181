// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/error.hpp>
#include <fourfold/base/json_depth.hpp>
#include <fourfold/io/mapped_file.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <string_view>

namespace fourfold::data::detail {

/// A JSON file, parsed. Included by *.json.cpp files only.
/// @throws UserError: config when it is missing, data_corrupt with the byte where it stops being
/// JSON, or is nested too deep
inline nlohmann::json parse_json_file(const std::filesystem::path& path) {
  const io::MappedFile file(path);
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()),
                              file.bytes().size());
  if (is_json_too_deep(text)) {
    throw UserError(
        ExitCode::data_corrupt,
        fmt::format("{}: is nested too deep for what it should be; the file is damaged, "
                    "fetch or make it again",
                    path.string()));
  }
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    throw UserError(
        ExitCode::data_corrupt,
        fmt::format(
            "{}: byte {}: is not JSON from here on; the file is damaged, fetch or make it again",
            path.string(), error.byte));
  }
}

}  // namespace fourfold::data::detail
