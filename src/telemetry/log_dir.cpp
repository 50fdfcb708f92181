// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/io/step_place.hpp>
#include <fourfold/telemetry/log_dir.hpp>

#include <string>
#include <system_error>

namespace fourfold::telemetry {

void make_log_dir(const std::filesystem::path& log_dir) {
  io::refuse_place_in_step(log_dir);
  std::error_code error;
  std::filesystem::create_directories(log_dir, error);
  if (error) {
    throw UserError(ExitCode::cannot_write,
                    format_message("cannot make the run directory {} ({}); name another log.dir",
                                   log_dir.string(), error.message()));
  }
}

std::unique_ptr<io::DirectoryLease> take_run_lease(const std::filesystem::path& log_dir) {
  io::refuse_place_in_step(log_dir);
  return std::make_unique<io::DirectoryLease>(
      log_dir, io::LeaseHolder::this_process(),
      io::LeaseOptions{.name = std::string(run_lease_name), .provisional = true});
}

std::optional<io::LeaseHolder> run_lease_holder(const std::filesystem::path& log_dir) {
  return io::living_holder_of(log_dir, io::LeaseHolder::this_process(),
                              std::string(run_lease_name));
}

}  // namespace fourfold::telemetry
