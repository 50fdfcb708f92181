// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/regular_file.hpp>
#include <fourfold/io/line_follower.hpp>
#include <fourfold/telemetry/exit_status.hpp>
#include <fourfold/telemetry/log_dir.hpp>
#include <fourfold/telemetry/own_files.hpp>
#include <fourfold/telemetry/report.hpp>
#include <fourfold/telemetry/run_files.hpp>
#include <fourfold/telemetry/status_file.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace fourfold::telemetry {

namespace {

namespace fs = std::filesystem;

/// Of the beginning of a file: whether a run may have written it.
using IsOurs = std::function<bool(std::string_view)>;

/// As versions wrote it that put no mark at the beginning. What looks so may as well be somebody's:
/// it counts only in a folder where a run has left its exit.json.
bool is_older_config(std::string_view head) {
  constexpr std::size_t origin_column = 40;
  std::istringstream lines{std::string(head)};
  std::string line;
  bool is_ours = std::getline(lines, line) && line == "[model]";
  while (is_ours && std::getline(lines, line) && !lines.eof()) {  // the last one may be cut here
    is_ours = line.empty() || line.starts_with('[') ||
              line.find("  # ", origin_column) != std::string::npos;
  }
  return is_ours;
}

/// SAVE and FINISHED may be made by a person, with a word of why perhaps; a run removes them.
bool is_short(std::string_view head) {
  constexpr std::size_t most_bytes = 4096;
  return head.size() <= most_bytes;
}

IsOurs as(const io::OwnFile& own) {
  return [own](std::string_view head) { return io::begins_as(head, own); };
}

constexpr std::size_t looked_at = std::size_t{256} << 10;  ///< exit.json as a whole

/// Nothing when it cannot be read.
std::optional<std::string> head_of(const fs::path& file) {
  std::string head(looked_at, '\0');
  const RegularFile opened = open_regular_file(file, O_RDONLY, Links::refuse);
  const ssize_t got =
      opened.descriptor ? ::read(opened.descriptor.get(), head.data(), head.size()) : -1;
  head.resize(std::max<ssize_t>(got, 0));
  return got >= 0 ? std::optional(std::move(head)) : std::nullopt;
}

/// Why a run must not write over what is there; empty: it may. An empty file has nothing to lose,
/// nor has one of nothing but NULs, as a machine that went down leaves them.
std::string objection(const fs::path& file, const IsOurs& is_ours) {
  std::error_code error;
  const fs::file_status status = fs::symlink_status(file, error);
  if (!fs::exists(status)) {
    return {};
  }
  if (fs::is_directory(status)) {
    return "is a folder";
  }
  if (!fs::is_regular_file(status)) {
    return "is a link, a device, a pipe or a socket";
  }
  const std::optional<std::string> head = head_of(file);
  if (!head) {
    return "cannot be read";
  }
  const bool is_blank = head->size() < looked_at &&
                        head->find_first_not_of(std::string_view("\0", 1)) == std::string::npos;
  return is_blank || is_ours(*head) ? "" : "is not a file that fourfold wrote";
}

void refuse_those_in_the_way(const std::vector<std::pair<fs::path, IsOurs>>& written) {
  std::string text;
  for (const auto& [file, is_ours] : written) {
    if (const std::string why = objection(file, is_ours); !why.empty()) {
      text += fmt::format("{}{} {}", text.empty() ? "" : "; ", file.string(), why);
    }
  }
  if (!text.empty()) {
    throw UserError(ExitCode::config,
                    format_message("{} (fourfold would write its own there); rename it, or choose "
                                   "another log.dir",
                                   text));
  }
}

}  // namespace

void require_appendable(const fs::path& file) {
  std::error_code ignored;
  if (!fs::exists(fs::symlink_status(file, ignored))) {
    return;  // it will be made
  }
  const RegularFile opened = open_regular_file(file, O_RDWR | O_APPEND, Links::refuse);
  if (!opened.descriptor) {
    throw UserError(
        ExitCode::cannot_write,
        format_message(
            "{}: cannot be written ({}); let its owner give you the right to, or choose another "
            "log.dir",
            file.string(),
            opened.error_number == 0 ? "it " + opened.defect
                                     : std::generic_category().message(opened.error_number)));
  }
}

void require_replaceable(const fs::path& file) {
  if (const auto why = io::why_not_replaceable(file)) {
    throw UserError(ExitCode::cannot_write,
                    format_message("{}: {}, or choose another log.dir", file.string(), *why));
  }
}

bool may_append_events(const fs::path& file) {
  return objection(file, begins_with_events).empty();
}

void refuse_foreign_attempts(const fs::path& log_dir) {
  refuse_those_in_the_way({{RunFiles(log_dir).attempts(), begins_with_events}});
}

void refuse_place_of_run(const fs::path& output) {
  const fs::path parent = output.parent_path();
  const fs::path folder = parent.empty() ? "." : parent;
  const auto names = RunFiles({}).replaced_whole();
  if (holds_run(folder) && std::ranges::count(names, output.filename()) > 0) {
    throw UserError(ExitCode::config,
                    format_message("{}: is the place of a file of the run whose directory {} is; "
                                   "choose another name",
                                   output.string(), folder.string()));
  }
}

bool holds_record(const fs::path& folder) {
  const RunFiles files(folder);
  const auto begins_as_config = [](std::string_view head) {
    return head.starts_with(effective_config_mark);
  };
  const std::vector<std::pair<fs::path, IsOurs>> left{{files.config(), begins_as_config},
                                                      {files.exit_status(), is_exit_text},
                                                      {files.status(), is_status_text},
                                                      {files.metrics(), begins_with_events},
                                                      {files.attempts(), begins_with_events}};
  return std::ranges::any_of(left, [](const auto& one) {
    const std::string head = head_of(one.first).value_or("");
    return !head.empty() && one.second(head);
  });
}

void refuse_foreign_files(const fs::path& log_dir, const OutputsOfRun& outputs) {
  const RunFiles files(log_dir);
  std::error_code ignored;
  const bool has_run = fs::is_regular_file(fs::symlink_status(files.exit_status(), ignored)) &&
                       is_exit_text(head_of(files.exit_status()).value_or(""));
  std::vector<std::pair<fs::path, IsOurs>> written{{files.exit_status(), is_exit_text},
                                                   {files.status(), is_status_text},
                                                   {files.metrics(), begins_with_events},
                                                   {files.attempts(), begins_with_events},
                                                   {files.hang(), is_hang_text},
                                                   {files.finished(), is_short},
                                                   {files.save(), is_short}};
  if (outputs.config) {
    written.emplace_back(files.config(), [has_run](std::string_view head) {
      return head.starts_with(effective_config_mark) || (has_run && is_older_config(head));
    });
  }
  if (outputs.report) {
    written.emplace_back(files.report(), as(own_report));
  }
  if (outputs.trace) {
    written.emplace_back(files.trace(), as(*outputs.trace));
  }
  if (outputs.timeline) {
    written.emplace_back(files.timeline(), as(*outputs.timeline));
  }
  refuse_those_in_the_way(written);
}

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
