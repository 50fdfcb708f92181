// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/batch_job.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>

namespace fourfold::telemetry {

/// When the job ends, where somebody has moved its end later since it began: the batch script
/// (slurm/launch.bash) writes RunFiles::job_end() then, "JOB RESTARTS SECONDS".
/// @param job  whose end: a file of another job, or of another start of it, says nothing
/// @return seconds since 1970; nothing where there is no such file, or it says something else
std::optional<std::int64_t> moved_end_of(const BatchJob& job, const std::filesystem::path& log_dir);

}  // namespace fourfold::telemetry
