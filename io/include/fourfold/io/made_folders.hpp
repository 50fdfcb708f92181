// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <utility>
#include <vector>

namespace fourfold::io {

/// A folder that is there from now on, with those above it. What was made for that goes with this,
/// unless it is kept or somebody else has come to it: a start that is refused leaves no folder.
class MadeFolders {
 public:
  /// @throws UserError (cannot_write), with nothing left behind
  explicit MadeFolders(const std::filesystem::path& folder);
  ~MadeFolders() { remove(); }
  MadeFolders(MadeFolders&& other) noexcept : made_(std::exchange(other.made_, {})) {}
  MadeFolders& operator=(MadeFolders&& other) noexcept;
  MadeFolders(const MadeFolders&) = delete;
  MadeFolders& operator=(const MadeFolders&) = delete;

  void keep() noexcept { made_.clear(); }

 private:
  void remove() noexcept;

  std::vector<std::filesystem::path> made_;  ///< the innermost first
};

}  // namespace fourfold::io
