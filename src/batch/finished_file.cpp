// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/batch/finished_file.hpp>
#include <fourfold/io/atomic_file.hpp>
#include <fourfold/io/line_follower.hpp>
#include <fourfold/telemetry/run_files.hpp>

#include <fmt/format.h>

#include <sstream>
#include <string>
#include <system_error>

namespace fourfold::batch {

void write_finished(const std::filesystem::path& log_dir, std::int64_t step) {
  io::AtomicFile file(telemetry::RunFiles(log_dir).finished());
  file.write(fmt::format("step {}\n", step));
  file.publish();
}

bool is_finished(const std::filesystem::path& log_dir, std::int64_t steps) {
  constexpr std::uint64_t most_bytes = 4096;
  std::error_code ignored;  // of a folder that cannot be looked at nothing is known
  if (!std::filesystem::exists(telemetry::RunFiles(log_dir).finished(), ignored)) {
    return false;
  }
  std::istringstream file(
      io::text_if_readable(telemetry::RunFiles(log_dir).finished(), most_bytes).value_or(""));
  std::string word;
  std::int64_t step = 0;
  return !(file >> word >> step) || word != "step" || step >= steps;
}

}  // namespace fourfold::batch
