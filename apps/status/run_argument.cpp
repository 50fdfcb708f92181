// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "status.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/regular_file.hpp>
#include <fourfold/runfile/run_config.hpp>
#include <fourfold/telemetry/log_dir.hpp>

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

namespace fourfold::status_program {
namespace fs = std::filesystem;
namespace {

/// "runs/a/" and "./runs/a" are runs/a; above a link is above what it leads to.
fs::path plain(const fs::path& path) {
  std::error_code failure;
  fs::path normal = path.lexically_normal();
  if (std::ranges::find(path, fs::path("..")) != path.end() &&
      !fs::equivalent(normal, path, failure)) {
    normal = whole_path(path);
  }
  return normal.has_filename() || !normal.has_parent_path() ? normal : normal.parent_path();
}

/// Of an entry beside runs that is none; empty for what nobody would take for one: a file, or what
/// is hidden.
std::string why_passed_over(const fs::path& entry) {
  std::error_code failure;
  const fs::file_status status = fs::status(entry, failure);
  if (entry.filename().string().starts_with('.') || fs::is_regular_file(status)) {
    return {};
  }
  std::string why = "has no file that a run leaves in its log.dir";
  if (!fs::is_directory(status)) {
    why = fs::exists(status) ? "is no folder" : "leads nowhere, or cannot be looked at";
  } else if (const std::string reason = telemetry::why_not_readable(entry); !reason.empty()) {
    why = format_message("cannot be looked into ({})", reason);
  }
  return format_message("passed over {}: {}", entry.string(), why);
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
  if (telemetry::holds_run(folder)) {
    return {folder};
  }
  std::error_code ignored;
  std::vector<fs::path> entries;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    entries.push_back(entry.path());
  }
  std::sort(entries.begin(), entries.end());
  std::vector<fs::path> runs;
  std::ranges::copy_if(entries, std::back_inserter(runs), telemetry::holds_run);
  if (runs.empty()) {
    return {folder};  // who looks into it tells
  }
  for (const fs::path& entry : entries) {
    const std::string why = telemetry::holds_run(entry) ? "" : why_passed_over(entry);
    if (!why.empty()) {
      log::warning(why);
    }
  }
  return runs;
}

}  // namespace fourfold::status_program
