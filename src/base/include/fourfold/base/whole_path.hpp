// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace fourfold {

/// Where a path of the user's leads, from anywhere: absolute, without ".", "..", or slashes at its
/// end. Links stay as they are written; but ".." means what is above the place that a link before
/// it leads to, so a path that has one is resolved as far as it exists. Local; asks the file system
/// only then. A path of which nobody can say where it leads comes back as it is.
std::filesystem::path whole_path(const std::filesystem::path& path);

}  // namespace fourfold
