// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

namespace fourfold::telemetry {

/// Makes the directory of a run, log.dir, if it is missing.
/// @throws UserError: cannot_write; config where it lies in a checkpoint, which it would damage
void make_log_dir(const std::filesystem::path& log_dir);

/// Where exit.json lies in it.
std::filesystem::path exit_file(const std::filesystem::path& log_dir);

}  // namespace fourfold::telemetry
