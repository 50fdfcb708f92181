// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/json_text.hpp>
#include <fourfold/io/mapped_file.hpp>

#include <nlohmann/json.hpp>

#include <filesystem>
#include <string_view>

namespace fourfold::data::detail {

/// A JSON file, parsed. Included by *.json.cpp files only.
/// @throws UserError: config when it is missing; as parse_json
inline nlohmann::json parse_json_file(const std::filesystem::path& path) {
  const io::MappedFile file(path);
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()),
                              file.bytes().size());
  return parse_json<nlohmann::json>(text, path.string());
}

}  // namespace fourfold::data::detail
