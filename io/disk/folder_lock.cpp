// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/io/folder_lock.hpp>

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>

namespace fourfold::io {

FolderLock::FolderLock(const std::filesystem::path& folder)
    : folder_(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  while (folder_ && ::flock(folder_.get(), LOCK_EX) != 0 && errno == EINTR) {
  }
}

}  // namespace fourfold::io
