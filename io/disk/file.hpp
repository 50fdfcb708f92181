// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The file system as this room uses it: every call's return code is looked at, short transfers
/// and EINTR are gone on with, and a failure names call, path and reason. What cannot be written is
/// a UserError: the disk, its quotas and permissions are the user's or the cluster's. Checkpoints
/// and AtomicFile write through here alone.
#pragma once

#include <fourfold/base/error.hpp>
#include <fourfold/base/unique_handle.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fourfold::io {

/// What went wrong, in words; nothing when all is well. Reading does not throw: a damaged file is a
/// finding that ranks vote on.
using Defect = std::optional<std::string>;

/// @throws UserError (cannot_write): "PATH: cannot be written (CALL: REASON; 3.1 GiB free) ..."; as
/// NoRoom where that is the reason
[[noreturn]] void cannot_write(const std::filesystem::path& path, std::string_view call,
                               int error_number);

/// Why `call` on `path` has failed: "open: No space left on device; 3.1 GiB free there". A file
/// system that has room for bytes and for no more files says so; where the path is at fault, or
/// permissions are, room is no matter.
std::string write_failure(const std::filesystem::path& path, std::string_view call,
                          int error_number);
/// Its last part, of what is free there, where that is known.
std::string room_text(int error_number, std::optional<std::uint64_t> free_bytes,
                      std::optional<std::uint64_t> free_files);

/// A file that is written at offsets. Move-only. Closing is explicit, because it can fail; a file
/// that is destroyed open is closed without a word.
class OutputFile {
 public:
  /// A new file. @throws UserError (cannot_write), also when there is one already
  static OutputFile create(const std::filesystem::path& path);
  /// A new file that errors call `shown`: the name it will have at the end.
  static OutputFile create(const std::filesystem::path& path, std::filesystem::path shown);
  /// A file that another rank has created.
  static OutputFile open(const std::filesystem::path& path);
  /// A file that whichever of its writers comes first creates.
  static OutputFile open_or_create(const std::filesystem::path& path);

  /// Makes the file this long and, where the file system can, reserves its space, so that a full
  /// disk shows before anything is written.
  void set_size(std::uint64_t bytes);
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  /// fdatasync: contents and size reach stable storage.
  void sync();
  /// Lets go of what the page cache holds of it and is synced. A hint, which cannot fail.
  void forget_pages() noexcept;
  /// Whatever the umask, all users may read it. A hint.
  void let_all_read() noexcept;
  void close();

 private:
  OutputFile(const std::filesystem::path& path, std::filesystem::path shown, int flags);

  std::filesystem::path shown_;
  FileDescriptor descriptor_;
};

/// Creates `path` with these contents, synced and closed.
void write_new_file(const std::filesystem::path& path, std::span<const std::byte> bytes);

/// A regular file that is read at offsets; never follows a symbolic link.
class InputFile {
 public:
  /// Opens, and replaces what was open before.
  Defect open(const std::filesystem::path& path);
  Defect read_at(std::uint64_t offset, std::span<std::byte> bytes) const;
  std::uint64_t size_bytes() const noexcept { return size_bytes_; }

 private:
  FileDescriptor descriptor_;
  std::uint64_t size_bytes_ = 0;
};

/// The whole of a regular file of at most `limit` bytes, into `contents`.
Defect read_file(const std::filesystem::path& path, std::uint64_t limit, std::string& contents);

/// Creates one folder. @throws UserError (cannot_write), also when it exists
void make_directory(const std::filesystem::path& path);
/// Creates a folder and its parents where missing, and brings their entries to stable storage.
void make_directories(const std::filesystem::path& path);
/// Gives a file or folder a name that nothing has, or else fails with EEXIST; at once where the
/// file system can. @throws UserError (cannot_write)
void rename_to_new(const std::filesystem::path& from, const std::filesystem::path& to);
/// @param ask  whether the place is still ours: called last before the rename, and again where that
///   fails, since it fails where a holder of the lease was fenced off; may throw
void rename_path(const std::filesystem::path& from, const std::filesystem::path& to,
                 const std::function<void()>& ask = {});
/// Removes a file, if it is there.
void remove_file(const std::filesystem::path& path);
/// fsync of a folder: creations, renames and removals in it reach stable storage.
void sync_directory(const std::filesystem::path& path);

enum class EntryKind : std::uint8_t { missing, file, directory, other };
/// Symbolic links are "other".
EntryKind kind_of(const std::filesystem::path& path) noexcept;
/// What tells an entry from another of its name on the same file system; 0: there is none.
std::uint64_t number_of(const std::filesystem::path& path) noexcept;

/// Where a symbolic link leads, as it is written there; nothing when this is none.
std::optional<std::string> link_target(const std::filesystem::path& path);

/// Names in a folder, sorted; nothing when it cannot be read.
std::optional<std::vector<std::string>> names_in(const std::filesystem::path& directory);

/// Removes a folder and all below, not following links. Goes on after a failure and names the
/// first.
Defect remove_tree(const std::filesystem::path& path);

/// Bytes that an unprivileged user can still write on the file system of `path`.
std::optional<std::uint64_t> free_bytes(const std::filesystem::path& path) noexcept;
/// Files that can still be made there (inodes); nothing where the file system does not count them.
std::optional<std::uint64_t> free_files(const std::filesystem::path& path) noexcept;

/// "3.1 GiB"
std::string bytes_text(std::uint64_t bytes);

}  // namespace fourfold::io
