// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "disk/file.hpp"

#include <fourfold/base/message.hpp>
#include <fourfold/base/regular_file.hpp>
#include <fourfold/io/atomic_file.hpp>
#include <fourfold/io/own_file.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <system_error>
#include <tuple>
#include <utility>

namespace fourfold::io {

namespace {

/// Of a payload; index and manifest are written and synced at once.
constexpr ssize_t large_write_bytes = 1 << 20;

std::string_view advice(int error_number) {
  switch (error_number) {
    case ENOSPC:
      return "remove files or choose a folder on another file system";
    case EDQUOT:
      return "remove files of yours (a quota counts bytes and files) or choose a folder on another "
             "file system";
    case EFBIG:
      return "raise the limit on file sizes (ulimit -f)";
    case EACCES:
    case EPERM:
    case EROFS:
      return "check permissions or choose a folder that you can write to";
    case ENOENT:
      return "create the folder or choose another";
    case ENOTDIR:
    case EISDIR:
    case EEXIST:
      return "choose another folder or name";
    default:
      return "check the file system";
  }
}

/// Whether the path is at fault, whatever room there is.
bool is_about_path(int error_number) {
  constexpr std::array of_paths{ENOENT, ENOTDIR, EISDIR, EEXIST, EACCES, EPERM, EROFS};
  return std::ranges::find(of_paths, error_number) != of_paths.end();
}

/// Calls `call` until it is not interrupted.
template <class Call>
auto uninterrupted(const Call& call) {
  auto result = call();
  while (result == -1 && errno == EINTR) {
    result = call();
  }
  return result;
}

std::string reason(std::string_view call) {
  return fmt::format("{}: {}", call, std::strerror(errno));
}

}  // namespace

std::string room_text(int error_number, std::optional<std::uint64_t> free_bytes,
                      std::optional<std::uint64_t> free_files) {
  const bool has_no_inodes = error_number == ENOSPC && free_files && *free_files == 0;
  return fmt::format("{} free there{}", free_bytes ? bytes_text(*free_bytes) : "unknown space",
                     has_no_inodes ? ", but no inode: no more files can be made" : "");
}

std::string write_failure(const std::filesystem::path& path, std::string_view call,
                          int error_number) {
  const std::string what = fmt::format("{}: {}", call, std::strerror(error_number));
  if (is_about_path(error_number)) {
    return what;
  }
  std::filesystem::path existing = path;
  while (kind_of(existing) == EntryKind::missing && existing.has_parent_path() &&
         existing != existing.parent_path()) {
    existing = existing.parent_path();
  }
  if (kind_of(existing) == EntryKind::missing) {
    existing = ".";
  }
  return fmt::format("{}; {}", what,
                     room_text(error_number, free_bytes(existing), free_files(existing)));
}

void cannot_write(const std::filesystem::path& path, std::string_view call, int error_number) {
  const std::string message =
      fmt::format("{}: cannot be written ({}); {}", path.string(),
                  write_failure(path, call, error_number), advice(error_number));
  if (error_number == ENOSPC || error_number == EDQUOT) {
    throw NoRoom(message);
  }
  throw UserError(ExitCode::cannot_write, message);
}

OutputFile::OutputFile(const std::filesystem::path& path, std::filesystem::path shown, int flags)
    : shown_(std::move(shown)) {
  RegularFile file = open_regular_file(path, O_WRONLY | flags, Links::refuse);
  if (file.descriptor) {
    descriptor_ = std::move(file.descriptor);
  } else if (file.error_number != 0) {
    cannot_write(shown_, "open", file.error_number);
  } else {
    throw UserError(
        ExitCode::cannot_write,
        format_message("{}: cannot be written (it {}); remove it or choose another name",
                       shown_.string(), file.defect));
  }
}

OutputFile OutputFile::create(const std::filesystem::path& path) {
  return create(path, path);
}

OutputFile OutputFile::create(const std::filesystem::path& path, std::filesystem::path shown) {
  return {path, std::move(shown), O_CREAT | O_EXCL};
}

OutputFile OutputFile::open(const std::filesystem::path& path) {
  return {path, path, 0};
}

OutputFile OutputFile::open_or_create(const std::filesystem::path& path) {
  return {path, path, O_CREAT};
}

void OutputFile::set_size(std::uint64_t bytes) {
  if (uninterrupted([&] { return ::ftruncate(descriptor_.get(), bytes); }) != 0) {
    cannot_write(shown_, "ftruncate", errno);
  }
  const auto reserved =
      uninterrupted([&] { return bytes == 0 ? 0 : ::fallocate(descriptor_.get(), 0, 0, bytes); });
  if (reserved != 0 && errno != EOPNOTSUPP && errno != ENOSYS) {
    cannot_write(shown_, "fallocate", errno);
  }
}

void OutputFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = uninterrupted(
        [&] { return ::pwrite(descriptor_.get(), bytes.data(), bytes.size(), offset); });
    if (written <= 0) {
      cannot_write(shown_, "pwrite", written == 0 ? EIO : errno);
    }
    if (written >= large_write_bytes) {
      // The disk need not wait for sync(). Only a hint: what fails shows there.
      ::sync_file_range(descriptor_.get(), offset, written, SYNC_FILE_RANGE_WRITE);
    }
    bytes = bytes.subspan(written);
    offset += written;
  }
}

void OutputFile::sync() {
  if (uninterrupted([&] { return ::fdatasync(descriptor_.get()); }) != 0) {
    cannot_write(shown_, "fdatasync", errno);
  }
}

void OutputFile::forget_pages() noexcept {
  ::posix_fadvise(descriptor_.get(), 0, 0, POSIX_FADV_DONTNEED);
}

void OutputFile::let_all_read() noexcept {
  struct stat status = {};
  if (::fstat(descriptor_.get(), &status) == 0) {
    std::ignore = ::fchmod(descriptor_.get(), (status.st_mode & 07777U) | 0444U);
  }
}

void OutputFile::close() {
  // Linux has closed the descriptor even when close says EINTR.
  if (::close(descriptor_.release()) != 0 && errno != EINTR) {
    cannot_write(shown_, "close", errno);
  }
}

void write_new_file(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  OutputFile file = OutputFile::create(path);
  file.write_at(0, bytes);
  file.sync();
  file.close();
}

Defect InputFile::open(const std::filesystem::path& path) {
  RegularFile file = open_regular_file(path, O_RDONLY, Links::refuse);
  descriptor_ = std::move(file.descriptor);
  size_bytes_ = file.size_bytes;
  return descriptor_ ? Defect() : Defect(file.defect);
}

Defect InputFile::read_at(std::uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t got = uninterrupted(
        [&] { return ::pread(descriptor_.get(), bytes.data(), bytes.size(), offset); });
    if (got < 0) {
      return fmt::format("cannot be read at byte {} ({})", offset, std::strerror(errno));
    }
    if (got == 0) {
      return fmt::format("ends at byte {}, in the middle of what it should hold", offset);
    }
    bytes = bytes.subspan(got);
    offset += got;
  }
  return std::nullopt;
}

Defect read_file(const std::filesystem::path& path, std::uint64_t limit, std::string& contents) {
  return read_regular_file(path, Links::refuse, limit, contents);
}

void make_directory(const std::filesystem::path& path) {
  if (::mkdir(path.c_str(), 0777) != 0) {
    cannot_write(path, "mkdir", errno);
  }
}

void make_directories(const std::filesystem::path& path) {
  std::error_code ignored;  // what is wrong shows in mkdir
  if (std::filesystem::is_directory(path, ignored)) {
    return;
  }
  const std::filesystem::path parent = path.parent_path();
  if (!parent.empty()) {
    make_directories(parent);
  }
  if (::mkdir(path.c_str(), 0777) != 0 &&
      (errno != EEXIST || !std::filesystem::is_directory(path, ignored))) {
    cannot_write(path, "mkdir", errno == EEXIST ? ENOTDIR : errno);
  }
  sync_directory(parent.empty() ? "." : parent);
}

void rename_path(const std::filesystem::path& from, const std::filesystem::path& to,
                 const std::function<void()>& ask) {
  if (ask) {
    ask();
  }
  if (::rename(from.c_str(), to.c_str()) != 0) {
    const int error_number = errno;
    if (ask) {
      ask();
    }
    cannot_write(to, "rename", error_number);
  }
}

void rename_to_new(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) {
    return;
  }
  if (errno != EINVAL && errno != ENOSYS) {
    cannot_write(to, "rename", errno);
  }
  // NFS and others do not know how: what comes between these two is replaced.
  if (kind_of(to) != EntryKind::missing) {
    cannot_write(to, "rename", EEXIST);
  }
  rename_path(from, to);
}

void remove_file(const std::filesystem::path& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    cannot_write(path, "unlink", errno);
  }
}

void sync_directory(const std::filesystem::path& path) {
  const FileDescriptor directory(
      uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  if (!directory) {
    cannot_write(path, "open", errno);
  }
  // EINVAL: this file system has nothing to sync for folders.
  if (uninterrupted([&] { return ::fsync(directory.get()); }) != 0 && errno != EINVAL) {
    cannot_write(path, "fsync", errno);
  }
}

EntryKind kind_of(const std::filesystem::path& path) noexcept {
  struct stat status = {};
  if (::lstat(path.c_str(), &status) != 0) {
    return errno == ENOENT || errno == ENOTDIR ? EntryKind::missing : EntryKind::other;
  }
  if (S_ISREG(status.st_mode)) {
    return EntryKind::file;
  }
  return S_ISDIR(status.st_mode) ? EntryKind::directory : EntryKind::other;
}

std::uint64_t number_of(const std::filesystem::path& path) noexcept {
  struct stat status = {};
  return ::lstat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

std::optional<std::string> link_target(const std::filesystem::path& path) {
  std::error_code is_none;
  const std::filesystem::path target = std::filesystem::read_symlink(path, is_none);
  return is_none ? std::nullopt : std::optional(target.string());
}

std::optional<std::vector<std::string>> names_in(const std::filesystem::path& directory) {
  std::error_code failure;
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator entry(directory, failure), end; !failure && entry != end;
       entry.increment(failure)) {
    names.push_back(entry->path().filename().string());
  }
  if (failure) {
    return std::nullopt;
  }
  std::sort(names.begin(), names.end());
  return names;
}

Defect remove_tree(const std::filesystem::path& path) {
  Defect first;
  if (kind_of(path) == EntryKind::directory) {
    for (const std::string& name : names_in(path).value_or(std::vector<std::string>{})) {
      Defect defect = remove_tree(path / name);
      if (!first) {
        first = std::move(defect);
      }
    }
    if (::rmdir(path.c_str()) != 0 && !first) {
      first = fmt::format("{}: {}", path.string(), reason("rmdir"));
    }
  } else if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    first = fmt::format("{}: {}", path.string(), reason("unlink"));
  }
  return first;
}

std::optional<std::uint64_t> free_files(const std::filesystem::path& path) noexcept {
  struct statvfs status = {};
  if (::statvfs(path.c_str(), &status) != 0 || status.f_files == 0) {
    return std::nullopt;
  }
  return status.f_favail;
}

std::optional<std::uint64_t> free_bytes(const std::filesystem::path& path) noexcept {
  struct statvfs status = {};
  if (::statvfs(path.c_str(), &status) != 0) {
    return std::nullopt;
  }
  return status.f_bavail * status.f_frsize;
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 6> units = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, units[unit]);
}

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
