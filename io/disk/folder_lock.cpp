// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/regular_file.hpp>
#include <fourfold/io/folder_lock.hpp>

#include <sys/file.h>

#include <cerrno>

namespace fourfold::io {

FolderLock::FolderLock(const std::filesystem::path& folder)
    : folder_(open_folder(folder.empty() ? "." : folder, Links::follow)) {
  while (folder_ && ::flock(folder_.get(), LOCK_EX) != 0 && errno == EINTR) {
  }
}

}  // namespace fourfold::io
