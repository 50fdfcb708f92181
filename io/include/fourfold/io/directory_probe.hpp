// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What a directory can do for a run, found out with small files. They have names that
/// remove_leftovers() knows, and are removed by whoever made them, also when a signal ends it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

namespace fourfold::io {

struct DirectoryProbe {
  std::uint64_t bytes = 0;  ///< written, synced, read back and compared
  double write_s = 0;       ///< with the sync
  double read_s = 0;        ///< past the page cache, where the system lets go of it
  bool has_links = false;   ///< link() works
};

/// Writes a new file, syncs it, reads it back and compares its CRC-32C, renames it, links it and
/// removes it. Local.
/// @param most_bytes  to write; fewer where that takes longer than `most_s`, but 1 MiB at least
/// @throws UserError: cannot_write naming call, directory and reason; data_corrupt when what is
///   read is not what was written
DirectoryProbe probe_directory(const std::filesystem::path& directory, std::uint64_t most_bytes,
                               double most_s);

/// What is left on a file system for an unprivileged user, or needed; nothing where that is not
/// counted.
struct Room {
  std::optional<std::uint64_t> bytes;
  std::optional<std::uint64_t> files;  ///< inodes
};
Room room_of(const std::filesystem::path& directory);

class Temporary;

/// A small file with its own name for contents, that others look for. Removed at the end.
class ProbeFile {
 public:
  /// @param word  letters and digits, that no other probe has
  /// @throws UserError (cannot_write)
  ProbeFile(const std::filesystem::path& directory, const std::string& word);
  ~ProbeFile();
  ProbeFile(const ProbeFile&) = delete;
  ProbeFile& operator=(const ProbeFile&) = delete;

  /// Whether this process sees the one of that word, whole.
  static bool is_seen(const std::filesystem::path& directory, const std::string& word);
  /// A word that nobody else draws.
  static std::string new_word();

 private:
  std::unique_ptr<Temporary> file_;
};

/// Removes what killed processes left of their probes: files older than ten minutes. Local.
void remove_old_probes(const std::filesystem::path& directory) noexcept;

}  // namespace fourfold::io
