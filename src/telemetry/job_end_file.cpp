// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/io/line_follower.hpp>
#include <fourfold/telemetry/job_end_file.hpp>
#include <fourfold/telemetry/run_files.hpp>

#include <sstream>
#include <string>

namespace fourfold::telemetry {

std::optional<std::int64_t> moved_end_of(const BatchJob& job,
                                         const std::filesystem::path& log_dir) {
  constexpr std::uint64_t most_bytes = 200;
  const auto text = io::text_if_readable(RunFiles(log_dir).job_end(), most_bytes);
  std::istringstream words(text.value_or(""));
  BatchJob of;
  std::int64_t end_unix_s = 0;
  words >> of.id >> of.restarts >> end_unix_s;
  const bool is_of_job = words && of.id == job.id && of.restarts == job.restarts;
  return is_of_job && end_unix_s > 0 ? std::optional(end_unix_s) : std::nullopt;
}

}  // namespace fourfold::telemetry
