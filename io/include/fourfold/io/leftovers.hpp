// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What jobs that died have left in a directory of steps. Only who has its lease may take it away.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::io {

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
