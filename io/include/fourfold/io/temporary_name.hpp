// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// How what is not whole yet is called: ".NAME.tmp-WORD" beside the NAME that it gets at the end,
/// of 16 random hexadecimal digits. The dot hides it from shells and patterns; what expands
/// patterns or lists folders takes no temporary name for data. What is left of it after a death is
/// removed by who writes NAME the next time: so nothing else counts as one, such as a copy
/// "NAME.tmp-2026".
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace fourfold::io {

/// The temporary sibling of `path`, another one each time.
std::filesystem::path temporary_sibling(const std::filesystem::path& path);
/// The one of this word, which several processes know. @param word  16 hexadecimal digits
std::filesystem::path temporary_sibling(const std::filesystem::path& path, std::string_view word);

/// The NAME that a temporary file or folder of this name would have got; nothing when it is no
/// temporary name.
std::optional<std::string> name_of_temporary(std::string_view name);

}  // namespace fourfold::io
