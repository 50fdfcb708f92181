// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/io/step_place.hpp>
#include <fourfold/telemetry/log_dir.hpp>
#include <fourfold/telemetry/run_files.hpp>

#include <algorithm>
#include <array>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>

namespace fourfold::telemetry {
namespace {

/// By its entries alone: who asks here reads no checkpoint, and links no library that does.
bool holds_steps(const std::filesystem::path& folder) {
  std::error_code ignored;  // what cannot be looked at holds none
  return std::ranges::any_of(
      std::filesystem::directory_iterator(folder, ignored),
      [](const std::filesystem::directory_entry& entry) { return io::is_step(entry.path()); });
}

/// "" is what a name without a folder in front has.
std::filesystem::path folder_around(const std::filesystem::path& path) {
  if (path.filename() == "." || path.filename() == "..") {
    return path / "..";  // whoever stands in a run's folder of steps names it so
  }
  const std::filesystem::path parent =
      path.has_filename() ? path.parent_path() : path.parent_path().parent_path();
  return parent.empty() ? "." : parent;
}

}  // namespace

bool holds_run(const std::filesystem::path& folder) {
  const RunFiles files(folder);
  std::error_code ignored;
  return std::ranges::any_of(
      std::array{files.config(), files.metrics(), files.status(), files.exit_status(),
                 files.attempts()},
      [&](const std::filesystem::path& file) { return std::filesystem::exists(file, ignored); });
}

std::string why_not_readable(const std::filesystem::path& folder) {
  std::error_code failure;
  const std::filesystem::directory_iterator entries(folder, failure);
  // Its entries may be listed and still not be looked at.
  if (!failure && entries != std::filesystem::directory_iterator()) {
    std::ignore = std::filesystem::symlink_status(entries->path(), failure);
  }
  return failure ? failure.message() : "";
}

std::filesystem::path log_dir_named(const std::filesystem::path& named) {
  std::error_code ignored;
  if (std::filesystem::is_directory(named, ignored)) {
    if (const std::string why = why_not_readable(named); !why.empty()) {
      throw UserError(ExitCode::config,
                      format_message("{}: cannot be looked into ({}); ask its owner for the right "
                                     "to, or name another run",
                                     named.string(), why));
    }
  }
  const bool is_step = io::is_step(named);
  if (!is_step && (holds_run(named) || !holds_steps(named))) {
    return named;
  }
  const std::filesystem::path steps = is_step ? folder_around(named) : named;
  for (const std::filesystem::path& folder : {steps, folder_around(steps)}) {
    if (holds_run(folder)) {
      return folder;
    }
  }
  throw UserError(
      ExitCode::config,
      format_message("{}: holds checkpoints, and what a run tells is not there (its checkpoint.dir "
                     "is not in its log.dir); name the run's log.dir, or its run file",
                     named.string()));
}

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

std::unique_ptr<io::DirectoryLease> take_run_lease(const std::filesystem::path& log_dir,
                                                   std::function<void()> before_overtaking) {
  io::refuse_place_in_step(log_dir);
  return std::make_unique<io::DirectoryLease>(
      log_dir, io::LeaseHolder::this_process(),
      io::LeaseOptions{.name = std::string(run_lease_name),
                       .before_overtaking = std::move(before_overtaking),
                       .provisional = true});
}

std::optional<io::LeaseHolder> run_lease_holder(const std::filesystem::path& log_dir) {
  return io::living_holder_of(log_dir, io::LeaseHolder::this_process(),
                              std::string(run_lease_name));
}

}  // namespace fourfold::telemetry
