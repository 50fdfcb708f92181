// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/error.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::io {

class OutputFile;
class Temporary;

/// A file that appears under its name whole or not at all: bytes go to a temporary sibling
/// (temporary_name.hpp), `sync` brings them to the disk, `publish` renames. Without `publish` the
/// temporary file is removed, also when a signal ends the process; what a killed process has left
/// the next AtomicFile of that path removes. One thread per object; every failure throws UserError
/// naming the path: cannot_write, or no_progress where another start has taken the directory over.
class AtomicFile {
 public:
  /// @throws UserError (cannot_write) where `path` is a device, a pipe or a socket
  explicit AtomicFile(std::filesystem::path path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  const std::filesystem::path& path() const noexcept { return path_; }

  /// Appends; buffered.
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  /// Flushes, fsyncs and closes. Nothing can be written afterwards.
  void sync();
  /// Renames to the final name, replacing an older file, and fsyncs the folder. Syncs if that has
  /// not been done. To publish several files together: sync all, then publish the one last that
  /// readers open first.
  /// @param ask  called last before the rename: when it throws, the older file stays
  /// @throws UserError (cannot_write) also where `path` has become a device, a pipe or a socket
  void publish(const std::function<void()>& ask = {});
  /// The same, but replaces nothing. @throws UserError (cannot_write) when something has that name
  void publish_as_new();

 private:
  void sync_folder() const;
  void flush();

  std::filesystem::path path_;
  std::unique_ptr<Temporary> temporary_;
  std::unique_ptr<OutputFile> file_;  ///< null once it is synced
  std::uint64_t written_bytes_ = 0;
  std::vector<std::byte> buffer_;
};

/// A file cannot be written because the disk, its inodes or the user's quota are used up
/// (cannot_write). Told apart for who removes things and thereby makes room.
class NoRoom : public UserError {
 public:
  explicit NoRoom(const std::string& message,
                  std::source_location where = std::source_location::current())
      : UserError(ExitCode::cannot_write, message, where) {}
};

}  // namespace fourfold::io
