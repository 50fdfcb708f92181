// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// How what is not whole yet is called: ".NAME.tmp-WORD" beside the NAME that it gets at the end,
/// of the process' number or a random word. The dot hides it from shells and patterns; what expands
/// patterns or lists folders takes no temporary name for data.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace fourfold::io {

/// The temporary sibling of `path`. @param word  hexadecimal digits
std::filesystem::path temporary_sibling(const std::filesystem::path& path, std::string_view word);

/// The NAME that a temporary file or folder of this name would have got, also of one that an older
/// version wrote, without the dot ("NAME.tmp-123"); nothing when it is no temporary name.
std::optional<std::string> name_of_temporary(std::string_view name);

}  // namespace fourfold::io
