// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>

namespace fourfold::batch {

/// Makes the file FINISHED in the directory of a run: the target was reached. It says at which
/// step, so that a run whose train.steps is raised later goes on. Written by the run when all else
/// is. @throws UserError (cannot_write)
void write_finished(const std::filesystem::path& log_dir, std::int64_t step);
/// Whether a run of `steps` steps has nothing left to do. A file without a number counts as one
/// that somebody made to end a chain.
bool is_finished(const std::filesystem::path& log_dir, std::int64_t steps);

}  // namespace fourfold::batch
