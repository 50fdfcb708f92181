// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

namespace fourfold {

/// Where a path of the user's leads, from anywhere: absolute, without ".", "..", or slashes at its
/// end. Links stay as they are written; but ".." means what is above the place that a link before
/// it leads to, so a path that has one is resolved as far as it exists. Local; asks the file system
/// only then. A path of which nobody can say where it leads comes back as it is.
std::filesystem::path whole_path(const std::filesystem::path& path);

/// Whether a path begins with a shell's word for a home, ~ or ~/, which nobody but a shell reads: a
/// folder of that name would be made.
bool begins_with_home(std::string_view path);
/// What a message says of one, after the name of what it was given for.
inline constexpr const char* home_is_a_shells =
    "begins with ~ (only a shell reads that as your home; here it would be a folder of that name); "
    "write the whole path, or ./~";

}  // namespace fourfold
