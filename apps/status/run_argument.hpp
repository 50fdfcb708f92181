// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

namespace fourfold::status_program {

/// The directory of a run by what a user calls it: that directory, its folder of checkpoints or a
/// step in it, or a run file.
/// @throws UserError (config) when it is none of them
std::filesystem::path log_dir_of_run(const std::string& run);

/// One name for one run, wherever it is looked at from: absolute, without "." and "..".
std::filesystem::path whole_path(const std::filesystem::path& path);

}  // namespace fourfold::status_program
