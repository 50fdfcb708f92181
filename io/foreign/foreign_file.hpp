// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "disk/file.hpp"

#include <filesystem>
#include <memory>

namespace fourfold::io {

/// A file of another program, open for reading, with the name that messages call it by.
struct ForeignFile {
  std::filesystem::path path;
  InputFile file;
};

/// Links are followed. @throws UserError (config) when there is no such file, it cannot be opened
/// or is no regular file, or a link leads nowhere
std::shared_ptr<const ForeignFile> open_foreign(const std::filesystem::path& path);

}  // namespace fourfold::io
