// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// report.html: a run, or several laid over each other, as one file that opens without a network:
/// inline SVG and style, no scripts, light and dark. It is made from metrics.jsonl, config.toml
/// and timeline.svg alone, so it can be made again anywhere.
#pragma once

#include <fourfold/io/own_file.hpp>
#include <fourfold/runfile/run_config.hpp>
#include <fourfold/telemetry/run_history.hpp>

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace fourfold::telemetry {

/// Whether a page begins as earlier versions wrote a report: by its title and style.
bool is_older_report(std::string_view beginning);

/// How every report begins.
inline constexpr io::OwnFile own_report{
    .mark =
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>"
        "<meta name=\"generator\" content=\"fourfold report\"/>",
    .maker = "fourfold report",
    .is_older = is_older_report};

/// A run as its directory tells it.
struct ReportedRun {
  std::string name;
  RunHistory history;
  std::string config_toml;                   ///< as it is shown; empty: the directory has none
  std::optional<runfile::RunConfig> config;  ///< the same, read
  std::string timeline_svg = {};             ///< of a traced run (log.trace); else empty
};

/// Reads metrics.jsonl and, if they are there, config.toml and timeline.svg of a log.dir.
/// @throws UserError: config when metrics.jsonl is missing, one of them is no regular file or
/// config.toml is damaged; data_corrupt when one cannot be read
ReportedRun load_reported_run(const std::filesystem::path& log_dir);

/// The page. Well-formed XML; everything that comes from files is escaped. Two or more runs share
/// the charts, and a table shows the keys in which they differ.
/// @pre !runs.empty()
std::string render_report(std::span<const ReportedRun> runs);

/// Renders and replaces `file` atomically.
/// @throws UserError (exit code cannot_write)
void write_report(const std::filesystem::path& file, std::span<const ReportedRun> runs);

}  // namespace fourfold::telemetry
