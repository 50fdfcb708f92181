// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <limits>

/// @file
/// What goes when a signal ends this process (base/fatal_exit.hpp): each function takes note of
/// one thing and returns a number, with which keep_at_signal() forgets it. 64 things at once; of
/// more, and of very long paths, nothing is noted, and who comes next sweeps them. Thread-safe.

namespace fourfold::io {

/// The number of what was not noted.
inline constexpr std::size_t nothing_at_signal = std::numeric_limits<std::size_t>::max();

/// A file, or a folder with all in it. Nothing has to be there yet.
std::size_t remove_at_signal(const std::filesystem::path& path);

/// A folder, if it is empty when all else has gone.
std::size_t remove_empty_folder_at_signal(const std::filesystem::path& folder);

/// A lease that is still this process's then, and all that is in its work folder.
/// @pre the folder's path is the lease's and more, and ends with "-" and the lease's word
std::size_t give_lease_back_at_signal(const std::filesystem::path& work_folder,
                                      const std::filesystem::path& lease);

void keep_at_signal(std::size_t number) noexcept;

/// Does all that is noted. Async-signal-safe.
void remove_noted() noexcept;

/// Removes a file, or a folder with what is up to eight levels below it, now. Async-signal-safe.
void remove_now(const char* path) noexcept;

}  // namespace fourfold::io
