// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "run_argument.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/runfile/run_config.hpp>
#include <fourfold/telemetry/log_dir.hpp>
#include <fourfold/telemetry/run_files.hpp>

#include <algorithm>
#include <system_error>

namespace fourfold::status_program {
namespace fs = std::filesystem;
namespace {

/// "runs/a/" and "./runs/a" are runs/a.
fs::path plain(const fs::path& path) {
  const fs::path normal = path.lexically_normal();
  return normal.has_filename() || !normal.has_parent_path() ? normal : normal.parent_path();
}

}  // namespace

fs::path log_dir_of_run(const std::string& run) {
  std::error_code error;
  const fs::file_status found = fs::status(run, error);
  if (fs::is_directory(found)) {
    return plain(telemetry::log_dir_named(plain(run)));
  }
  if (fs::is_regular_file(found)) {
    return plain(runfile::log_dir_of(run));
  }
  const std::string why = fs::exists(found) ? "it is neither a directory nor a file"
                          : error           ? error.message()
                                            : "there is no such directory or file";
  throw UserError(
      ExitCode::config,
      format_message("cannot look at the run {} ({}); name the directory of a run (log.dir of its "
                     "run file), its folder of checkpoints, or its run file",
                     run, why));
}

std::vector<fs::path> runs_in(const fs::path& folder) {
  const auto is_run = [](const fs::path& one) {
    const telemetry::RunFiles files(one);
    std::error_code ignored;  // of what cannot be looked at, who looks into it tells
    return fs::exists(files.config(), ignored) || fs::exists(files.metrics(), ignored) ||
           fs::exists(files.attempts(), ignored) || fs::exists(files.exit_status(), ignored);
  };
  std::vector<fs::path> runs;
  std::error_code ignored;
  if (!is_run(folder)) {
    for (const auto& entry : fs::directory_iterator(folder, ignored)) {
      if (entry.is_directory(ignored) && is_run(entry.path())) {
        runs.push_back(entry.path());
      }
    }
  }
  std::sort(runs.begin(), runs.end());
  return runs.empty() ? std::vector{folder} : runs;
}

fs::path whole_path(const fs::path& path) {
  std::error_code error;
  const fs::path whole = fs::absolute(path, error);
  return (error ? path : whole).lexically_normal();
}

}  // namespace fourfold::status_program
