// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace fourfold::status_program {

/// The directory of a run by what a user calls it: that directory, its folder of checkpoints or a
/// step in it, or a run file.
/// @throws UserError (config) when it is none of them
std::filesystem::path log_dir_of_run(const std::string& run);

struct FoundRuns {
  std::vector<std::filesystem::path> runs = {};
  std::vector<std::string> passed_over = {};  ///< folders and links beside them, and why
};

/// The runs that lie in a folder of runs, by name; else the folder itself.
FoundRuns runs_in(const std::filesystem::path& folder);

}  // namespace fourfold::status_program
