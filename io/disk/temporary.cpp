// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "disk/temporary.hpp"

#include "disk/at_signal.hpp"
#include "disk/file.hpp"

#include <fourfold/io/temporary_name.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <set>
#include <string>
#include <utility>

namespace fourfold::io {

namespace {

/// For a lock: some file systems lock only what is open for writing.
FileDescriptor opened(const std::filesystem::path& path) {
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file && errno == EISDIR) {
    file.reset(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  }
  return file;
}

bool is_first_look_for(const std::filesystem::path& path) {
  static std::mutex mutex;
  static std::set<std::filesystem::path> seen;
  const std::scoped_lock lock(mutex);
  return seen.insert(path).second;
}

}  // namespace

Temporary::Temporary(std::filesystem::path path)
    : path_(std::move(path)), slot_(remove_at_signal(path_)) {}

Temporary::~Temporary() {
  if (!path_.empty()) {
    remove_now(path_.c_str());
  }
  keep();
}

bool Temporary::lock() {
  lock_ = opened(path_);
  if (!lock_) {
    return kind_of(path_) != EntryKind::missing;  // there, but not to be locked
  }
  while (::flock(lock_.get(), LOCK_EX) != 0) {
    if (errno != EINTR) {
      return true;
    }
  }
  struct stat status {};
  return ::fstat(lock_.get(), &status) == 0 && status.st_ino == number_of(path_);
}

void Temporary::keep() noexcept {
  path_.clear();
  keep_at_signal(std::exchange(slot_, nothing_at_signal));
  lock_.reset();
}

void sweep_temporaries_of(const std::filesystem::path& path) {
  const std::filesystem::path parent = path.parent_path();
  const std::filesystem::path folder = parent.empty() ? "." : parent;
  std::error_code failure;  // an empty path has no place, which who writes there says
  const auto whole = std::filesystem::absolute(path, failure);
  if (failure || !is_first_look_for(whole)) {
    return;
  }
  const auto names = names_in(folder);
  for (const std::string& name : names.value_or(std::vector<std::string>{})) {
    if (name_of_temporary(name) != path.filename().string()) {
      continue;
    }
    const FileDescriptor file = opened(folder / name);
    if (file && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0) {
      remove_tree(folder / name);  // takes room and does no harm if it stays
    }
  }
}

}  // namespace fourfold::io
