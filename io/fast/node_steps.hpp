// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The fast steps that lie in a run's folder on one node. Its first rank alone removes some. What
/// cannot be removed is a warning: it takes room, but nobody will use it. Local.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

namespace fourfold::io {

/// @param home  the folder, in all of these
void remove_fast_steps(const std::filesystem::path& home, std::span<const std::int64_t> steps);
/// Those after the `keep_last` newest up to `step`; later ones, of before the run went back, stay.
void remove_outdated_fast_steps(const std::filesystem::path& home, std::int64_t step,
                                int keep_last);
/// What saves that failed have left there.
void sweep_fast_steps(const std::filesystem::path& home);
/// The folder with all that is in it.
void remove_all_fast_steps(const std::filesystem::path& home);

}  // namespace fourfold::io
