// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/io/own_file.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>

namespace fourfold::io {

std::optional<std::string> why_not_replaceable(const std::filesystem::path& file) {
  constexpr std::uint64_t is_mount_root = 0x2000;  // STATX_ATTR_MOUNT_ROOT, from Linux 5.8 on
  struct statx facts {};
  if (::statx(AT_FDCWD, file.c_str(), AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &facts) == 0) {
    const char* const why =
        (facts.stx_attributes & is_mount_root) != 0          ? "is mounted there by itself"
        : (facts.stx_attributes & STATX_ATTR_IMMUTABLE) != 0 ? "is immutable (chattr +i)"
        : (facts.stx_attributes & STATX_ATTR_APPEND) != 0    ? "is append-only (chattr +a)"
                                                             : nullptr;
    if (why != nullptr) {
      return fmt::format("{}, so it cannot be replaced; undo that", why);
    }
  }
  struct stat folder {};
  struct stat found {};
  const std::filesystem::path parent = file.parent_path();
  const uid_t user = ::geteuid();
  if (user == 0 || ::stat(parent.empty() ? "." : parent.c_str(), &folder) != 0 ||
      (folder.st_mode & S_ISVTX) == 0 || folder.st_uid == user ||
      ::lstat(file.c_str(), &found) != 0 || found.st_uid == user) {
    return std::nullopt;
  }
  return "is another user's, in a folder where each may remove only his own; let its owner remove "
         "it";
}

}  // namespace fourfold::io
