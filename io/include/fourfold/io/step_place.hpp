// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Which steps lie in a directory, and what lies in them or beside them that is none of theirs.
/// Nothing may be written into the folder of a step: with anything else in it the checkpoint would
/// count as damaged. What a program is told to write to is looked at here before it writes. Local.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::io {

/// An entry of a directory of steps that looks like one of them and is not listed as one.
struct PassedOver {
  std::filesystem::path path;
  std::optional<std::int64_t> step = {};  ///< whose exact name it has; nothing: nobody's
  std::string why;                        ///< "is a file, not a folder"
};

/// Steps committed in a directory, ascending: folders of a step's name, and links that lead to a
/// folder, since old steps may lie on another file system. Everything that looks for steps asks
/// here, so that all agree on what is one. A missing directory has none. Reads the directory only.
/// @param passed_over  out, if it is given: what looks like a step there and is none
/// @throws UserError (config) when it cannot be read, or is a link that leads nowhere
std::vector<std::int64_t> list_steps(const std::filesystem::path& directory,
                                     std::vector<PassedOver>* passed_over = nullptr);
/// Their folders, in the same order.
std::vector<std::filesystem::path> step_folders(const std::filesystem::path& directory);

/// Whether a folder, or what it is a link to, is a step. One that is damaged is if it is named like
/// one and holds a part of one.
bool is_step(const std::filesystem::path& folder);
/// Whether `path`, which need not be there, lies in a step or is one, wherever links lead. A step
/// that is damaged counts if it is named like one.
bool is_place_in_step(const std::filesystem::path& path);
/// @throws UserError (config) when it does
void refuse_place_in_step(const std::filesystem::path& path);
/// The same for what is to be a folder of steps. @throws UserError (config)
void refuse_step_as_directory(const std::filesystem::path& directory);

/// Whether a path is a folder or lies below it, wherever links lead. Of what cannot be looked at:
/// no.
bool lies_in(const std::filesystem::path& path, const std::filesystem::path& folder);

// What jobs that died have left in a directory of steps. Only who has its lease may take it away.

/// Folders of unfinished saves and of steps half removed, and files that were to be named or
/// removed at once, by name; also those of damaged steps that were set aside, if `set_aside`.
/// Local.
std::vector<std::string> leftovers_in(const std::filesystem::path& directory,
                                      bool set_aside = false);
/// Removes what leftovers_in() finds. Local. @return what went wrong, line by line
std::vector<std::string> remove_leftovers(const std::filesystem::path& directory,
                                          bool set_aside = false);

/// Whether `name` is that of a lease called `lease_name` before it had that name, or on its way
/// out.
bool is_lease_on_its_way(std::string_view lease_name, std::string_view name);

/// Says in the log what could not be removed.
void warn_of_leftovers(std::span<const std::string> problems);

}  // namespace fourfold::io
