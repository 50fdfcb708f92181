// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

namespace fourfold::io {

/// A folder that is there from now on, with those above it. What was made for that goes with this,
/// unless it is kept or somebody else has come to it: a start that is refused, or ended by a
/// signal, leaves no folder.
class MadeFolders {
 public:
  /// @throws UserError (cannot_write), with nothing left behind
  explicit MadeFolders(const std::filesystem::path& folder);
  ~MadeFolders() { remove(); }
  MadeFolders(MadeFolders&& other) noexcept
      : made_(std::exchange(other.made_, {})), at_signal_(std::exchange(other.at_signal_, {})) {}
  MadeFolders& operator=(MadeFolders&& other) noexcept;
  MadeFolders(const MadeFolders&) = delete;
  MadeFolders& operator=(const MadeFolders&) = delete;

  void keep() noexcept;

 private:
  void remove() noexcept;

  std::vector<std::filesystem::path> made_;  ///< the innermost first
  std::vector<std::size_t> at_signal_;       ///< where a signal handler finds them
};

class Temporary;

/// A folder that appears under its name whole or not at all: files are put into a temporary
/// sibling (temporary_name.hpp), which `publish` renames. Without it the sibling is removed with
/// all it holds, also when a signal ends the process; what a killed process has left the next
/// NewFolder of that path removes. Every failure throws UserError (cannot_write) naming the path.
class NewFolder {
 public:
  /// Creates the sibling, and the folders above where missing.
  /// @param bytes  that will be written; @throws also when there is something of the final name, or
  ///   less than `bytes` are free
  NewFolder(std::filesystem::path final_path, std::uint64_t bytes);
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;
  ~NewFolder();

  /// Where the files go until then.
  const std::filesystem::path& path() const noexcept;
  /// Syncs the folder, renames it and syncs the one above. The files must be on the disk already
  /// (AtomicFile::publish). @throws also when there is something of the final name by now
  void publish();

 private:
  std::filesystem::path final_path_;
  std::unique_ptr<Temporary> temporary_;
};

}  // namespace fourfold::io
