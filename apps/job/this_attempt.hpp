// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/batch/attempt_log.hpp>

#include <filesystem>

namespace fourfold::job {

/// This start of this job, as Slurm names it, beginning now.
batch::Attempt this_attempt();

/// Of the run in log_dir.
batch::AttemptLog log_in(const std::filesystem::path& log_dir);

}  // namespace fourfold::job
