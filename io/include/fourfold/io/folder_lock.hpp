// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/file_descriptor.hpp>

#include <filesystem>

namespace fourfold::io {

/// Holds a folder while several names in it change together: another process that locks it waits.
/// Advisory (flock), and gone with the process. Where the file system knows no such locks, as some
/// network file systems do not, nobody waits, and nobody waits for more than 5 seconds.
class FolderLock {
 public:
  /// @param folder  an empty path is the working directory
  /// @throws UserError (cannot_write) for a folder that may not be read, whose names cannot be
  /// synced
  explicit FolderLock(const std::filesystem::path& folder);

 private:
  FileDescriptor folder_;
};

}  // namespace fourfold::io
