// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/regular_file.hpp>
#include <fourfold/io/folder_lock.hpp>

#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <thread>

namespace fourfold::io {

namespace {

/// What holds a folder for longer is no preparation that gives its files their names: `flock FOLDER
/// COMMAND`, which may have started this very program, or a process that is stopped.
constexpr auto longest_wait = std::chrono::seconds(5);

}  // namespace

FolderLock::FolderLock(const std::filesystem::path& folder)
    : folder_(open_folder(folder.empty() ? "." : folder, Links::follow)) {
  if (!folder_ && errno == EACCES) {
    throw UserError(ExitCode::cannot_write,
                    format_message("{}: may be written, but not read, and so names in it cannot be "
                                   "made to last; give read access, or choose another folder",
                                   folder.empty() ? "." : folder.string()));
  }
  const auto end = std::chrono::steady_clock::now() + longest_wait;
  while (folder_ && ::flock(folder_.get(), LOCK_EX | LOCK_NB) != 0 &&
         (errno == EWOULDBLOCK || errno == EINTR) && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace fourfold::io
