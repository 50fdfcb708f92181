// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The fence of a lease (directory_lease.hpp). A process may stand still between its look at the
/// lease and the rename that it looked for, for as long as it takes another to take it for dead, to
/// take over and to save. No look can help against that. So each holder has a folder of its own in
/// the directory, and whatever counts there is a rename out of it (what is published) or into it
/// (what is removed). Who takes over takes the folders of all holders before it away first: their
/// renames fail from then on, whenever they come. docs/adr/0022-fenced-leases.md
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace fourfold::io {

/// What begins so is on its way out, and may be removed by whoever holds the directory.
inline constexpr std::string_view trash_prefix = ".trash-";

/// A folder, however its path is written.
using FolderId = std::pair<dev_t, ino_t>;
/// Of the folder that has this name now, links followed; nothing: none has.
std::optional<FolderId> id_of(const std::filesystem::path& folder);

/// The folder of one holder: "<lease>.d-<word>". Local; not movable.
class WorkFolder {
 public:
  /// Makes it. From now on work_folder_in() gives it. @throws UserError (cannot_write)
  WorkFolder(std::filesystem::path directory, std::string_view lease_name, std::string_view word);
  /// Removes it. What is still in it comes into the directory, as after a death.
  ~WorkFolder();
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  const std::filesystem::path& path() const noexcept { return path_; }
  /// The directory that it lies in.
  const std::optional<FolderId>& place() const noexcept { return place_; }
  /// Whether nobody has taken it away.
  bool is_there() const noexcept;

  /// Takes away the folders of all other holders of leases of this name. What is in them comes into
  /// the directory under its own name, for who sweeps what is left over there, or goes on with it.
  /// @return whether this holder has not been taken over itself meanwhile
  /// @throws UserError (cannot_write) where only their owner may
  bool fence();
  /// Whether it has taken one away.
  bool has_fenced() const noexcept { return has_fenced_; }

 private:
  bool take_away(const std::string& name);
  void empty(const std::filesystem::path& folder) const;

  std::filesystem::path directory_;
  std::string prefix_;             ///< of the names of all of them
  std::string given_back_prefix_;  ///< of the names of leases on their way out
  std::filesystem::path path_;
  std::optional<FolderId> place_;
  bool has_fenced_ = false;
};

/// The WorkFolder that this process has in a directory, the newest of several; else the directory
/// itself: then nobody else is to be at work there. Any thread.
std::filesystem::path work_folder_in(const std::filesystem::path& directory);

/// Whether that WorkFolder has taken away one that an earlier holder had left: who may live, with
/// files of the directory open. Any thread.
bool has_fenced_in(const std::filesystem::path& directory);

/// @throws UserError (no_progress) where this process has had a WorkFolder in the directory of
///   `file` that another has taken away. Any thread.
void refuse_fenced_off(const std::filesystem::path& file);

/// Whether `name` is that of the folder of a holder of this lease, whose word is not `word`.
bool is_work_folder_of_another(std::string_view name, std::string_view lease_name,
                               std::string_view word);

}  // namespace fourfold::io
