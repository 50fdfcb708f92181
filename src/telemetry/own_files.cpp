// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/regular_file.hpp>
#include <fourfold/telemetry/own_files.hpp>
#include <fourfold/telemetry/run_files.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
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

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// A JSON object of ours begins with this key: they are written in order.
IsOurs object_with(std::string_view key) {
  return [key](std::string_view head) {
    const std::size_t at = head.find_first_not_of(" \t\r\n{");
    return head.starts_with('{') && at != std::string_view::npos &&
           head.substr(at).starts_with(fmt::format("\"{}\":", key));
  };
}

/// Lines of ours begin with their event. Not the first one perhaps, which a full disk may have cut.
bool holds_events(std::string_view head) {
  constexpr std::string_view begin = "{\"event\":\"";
  return head.starts_with(begin) || contains(head, fmt::format("\n{}", begin));
}

/// With the line that says so; without it, as earlier versions wrote it: every key with its origin
/// in a column of its own.
bool is_effective_config(std::string_view head) {
  constexpr std::size_t origin_column = 40;
  if (head.starts_with(effective_config_mark)) {
    return true;
  }
  std::istringstream lines{std::string(head)};
  std::string line;
  bool is_ours = std::getline(lines, line) && line == "[model]";
  while (is_ours && std::getline(lines, line) && !lines.eof()) {  // the last one may be cut here
    is_ours = line.empty() || line.starts_with('[') ||
              line.find("  # ", origin_column) != std::string::npos;
  }
  return is_ours;
}

bool is_report(std::string_view head) {
  return head.starts_with("<!DOCTYPE html>") && contains(head, " · fourfold</title>");
}

bool is_timeline(std::string_view head) {
  return head.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ") &&
         contains(head, "role=\"img\" aria-label=\"");
}

bool is_trace(std::string_view head) {
  return head.starts_with("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[");
}

bool is_hang(std::string_view head) {
  return object_with("code")(head) && contains(head, "\"kind\":") && contains(head, "\"reason\":");
}

std::string head_of(const fs::path& file) {
  std::string head(std::size_t{64} << 10, '\0');
  const RegularFile opened = open_regular_file(file, O_RDONLY, Links::refuse);
  const ssize_t got =
      opened.descriptor ? ::read(opened.descriptor.get(), head.data(), head.size()) : 0;
  head.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return head;
}

/// Why a run must not write over what is there; empty: it may. An empty file has nothing to lose.
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
  const std::string head = head_of(file);
  return head.empty() || is_ours(head) ? "" : "is not a file that fourfold wrote";
}

}  // namespace

bool may_append_events(const fs::path& file) {
  return objection(file, holds_events).empty();
}

namespace {

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

void refuse_foreign_files(const fs::path& log_dir, const OutputsOfRun& outputs) {
  const RunFiles files(log_dir);
  std::vector<std::pair<fs::path, IsOurs>> written{{files.exit_status(), object_with("code")},
                                                   {files.status(), object_with("state")},
                                                   {files.metrics(), holds_events},
                                                   {files.attempts(), holds_events},
                                                   {files.hang(), is_hang}};
  if (outputs.config) {
    written.emplace_back(files.config(), is_effective_config);
  }
  if (outputs.report) {
    written.emplace_back(files.report(), is_report);
  }
  if (outputs.trace) {
    written.emplace_back(files.trace(), is_trace);
    written.emplace_back(files.timeline(), is_timeline);
  }
  refuse_those_in_the_way(written);
}

}  // namespace fourfold::telemetry
