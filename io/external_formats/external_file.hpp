// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "disk/file.hpp"

#include <fourfold/io/stored_array.hpp>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::io {

/// Opens a file of another program. Links are followed. @throws UserError (config) when there is no
/// such file, it cannot be opened or is no regular file, or a link leads nowhere
std::shared_ptr<const InputFile> open_external(const std::filesystem::path& path);

/// Reads `text`, the JSON of a safetensors file, and checks that it is of the expected form,
/// without a name twice, and that type, shape and byte range of each array agree. Memory stays in
/// proportion to the names in it.
/// @param arrays  out; byte ranges are within the part of the file after the JSON
/// @param metadata  out
Defect parse_safetensors_header(std::string_view text,
                                std::vector<StoredArray::Description>& arrays,
                                std::map<std::string, std::string>& metadata);

/// File name by array name, from the text of model.safetensors.index.json; nothing else in it is
/// looked at.
Defect parse_safetensors_index(std::string_view text, std::map<std::string, std::string>& file_of);

}  // namespace fourfold::io
