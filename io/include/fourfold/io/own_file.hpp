// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// A program never replaces a file that it did not make, nor its own input. What a user lets a
/// program write to is looked at here before anything is done. Local.
#pragma once

#include <fourfold/base/regular_file.hpp>
#include <fourfold/base/unique_handle.hpp>

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace fourfold::io {

/// What tells the files that a program makes from those of others.
struct OwnFile {
  /// With which each begins: where somebody's notes quote it, they are not ours.
  std::string_view mark;
  std::string_view maker;         ///< "fourfold report"
  std::string_view opening = {};  ///< what comes before the mark: "#!/bin/bash\n"
  bool is_anywhere = false;       ///< after the opening, in the first 4 KiB: in a binary file
  /// Whether a beginning is as an earlier version wrote it, which put no mark there; null: none
  /// did.
  bool (*is_older)(std::string_view beginning) = nullptr;
  /// For what people are asked to change, and is theirs then: whether a whole text is as it was
  /// made (sum_holds()). Null: it is ours for good.
  bool (*is_unchanged)(std::string_view text) = nullptr;
};

/// Whether text begins as one of ours does.
bool begins_as(std::string_view text, const OwnFile& own);
/// Whether a file is there, and does.
bool is_own_file(const std::filesystem::path& path, const OwnFile& own);

/// @param links  a link counts as what it leads to, and one that leads nowhere as not our own; or,
///   among files under names of ours, as not our own wherever it leads
/// @throws UserError (config) when something is there, and is neither an empty file nor one of
///   ours
void refuse_foreign_file(const std::filesystem::path& path, const OwnFile& own,
                         Links links = Links::follow);

/// Why a file that may be written cannot be removed or replaced, and what to do: a mount of its
/// own, chattr +i or +a, another user's in a sticky folder. Before several are replaced that belong
/// together. Nothing: nothing of that shows.
std::optional<std::string> why_not_replaceable(const std::filesystem::path& file);

/// A file that an option names; empty: it was not given.
struct NamedOutput {
  const char* option;
  std::filesystem::path path;
};
/// One would take the place of another, which nobody means.
/// @throws UserError (usage) naming both options
void refuse_one_place_twice(std::span<const NamedOutput> outputs);

/// Where an output leads that a user has named: a link of his own is followed, so that it stays and
/// what it leads to is replaced. A path that is no link, or leads nowhere, is itself.
std::filesystem::path followed(const std::filesystem::path& output);

/// @throws UserError (config) when `output` is one of `inputs`, however either is written and by
///   whichever link
void refuse_input_as_output(const std::filesystem::path& output,
                            std::span<const std::filesystem::path> inputs);

/// Holds a folder while several names in it change together, until the handle ends: another process
/// that locks it waits. Advisory (flock), and gone with the process. Where the file system knows no
/// such locks, as some network file systems do not, nobody waits, and nobody waits for more than 5
/// seconds.
/// @param folder  an empty path is the working directory
/// @throws UserError (cannot_write) for a folder that may not be read, whose names cannot be synced
[[nodiscard]] FileDescriptor lock_folder(const std::filesystem::path& folder);

}  // namespace fourfold::io
