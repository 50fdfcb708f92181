// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/io/checkpoint_find.hpp>
#include <fourfold/telemetry/log_dir.hpp>

#include <fmt/format.h>

#include <system_error>

namespace fourfold::telemetry {

void make_log_dir(const std::filesystem::path& log_dir) {
  io::refuse_place_in_step(log_dir);
  std::error_code error;
  std::filesystem::create_directories(log_dir, error);
  if (error) {
    throw UserError(ExitCode::cannot_write,
                    fmt::format("cannot make the run directory {} ({}) name another log.dir",
                                log_dir.string(), error.message()));
  }
}

std::filesystem::path exit_file(const std::filesystem::path& log_dir) {
  return log_dir / "exit.json";
}

}  // namespace fourfold::telemetry
