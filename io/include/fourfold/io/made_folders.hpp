// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
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

}  // namespace fourfold::io
