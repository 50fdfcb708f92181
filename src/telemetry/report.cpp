// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "report_sections.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/regular_file.hpp>
#include <fourfold/base/text.hpp>
#include <fourfold/io/atomic_file.hpp>
#include <fourfold/io/own_file.hpp>
#include <fourfold/telemetry/report.hpp>
#include <fourfold/telemetry/run_files.hpp>

#include <fmt/format.h>

#include <cstdint>
#include <system_error>

namespace fourfold::telemetry {
namespace {

/// A page with a larger one would not be a page; nothing of ours draws one.
constexpr std::uint64_t most_picture_bytes = 16'000'000;
constexpr std::uint64_t most_config_bytes = 16'000'000;

/// The text of a file that may be missing. @throws UserError when it is there and cannot be taken
std::string text_if_there(const std::filesystem::path& file, std::uint64_t most_bytes) {
  std::string text;
  const auto defect = read_regular_file(file, Links::refuse, most_bytes, text);
  std::error_code ignored;  // what cannot be looked at is there
  if (!defect || std::filesystem::symlink_status(file, ignored).type() ==
                     std::filesystem::file_type::not_found) {
    return text;
  }
  throw UserError(
      ExitCode::config,
      format_message("{}: {}; move it away to have a report without it", file.string(), *defect));
}

}  // namespace

ReportedRun load_reported_run(const std::filesystem::path& log_dir) {
  ReportedRun run;
  run.history = read_history(RunFiles(log_dir).metrics());
  run.name = whole_path(log_dir).filename().string();
  const std::filesystem::path config_file = RunFiles(log_dir).config();
  run.config_toml = text_if_there(config_file, most_config_bytes);
  if (!run.config_toml.empty()) {
    run.config = runfile::parse_saved_config(run.config_toml, config_file.string());
    runfile::Origins origins;
    runfile::resolve(*run.config, origins);  // derived values are comments there
  }
  run.timeline_svg = text_if_there(RunFiles(log_dir).timeline(), most_picture_bytes);
  return run;
}

bool is_older_report(std::string_view beginning) {
  constexpr std::string_view title_end =
      " · fourfold</title><style>\n:root{color-scheme:light dark;--page:#f6f7f9;--card:#fff;";
  return beginning.starts_with(
             "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/><meta "
             "name=\"viewport\" content=\"width=device-width, initial-scale=1\"/><title>") &&
         beginning.find(title_end) != std::string_view::npos;
}

std::string render_report(std::span<const ReportedRun> runs) {
  FOURFOLD_EXPECT(!runs.empty());
  const std::string title = runs.size() == 1 ? runs.front().name : "comparison of runs";
  std::string html = std::string(own_report.mark) +
                     "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>";
  html += fmt::format("<title>{} · fourfold</title><style>{}</style></head>\n<body><main>\n",
                      xml_escaped(title), report_style());
  html += runs.size() == 1 ? report_summary(runs.front()) : report_comparison(runs);
  html += report_charts(runs);
  for (const ReportedRun& run : runs) {
    html += runs.size() == 1 ? report_details(run)
                             : fmt::format("<details><summary>{}</summary>\n{}</details>\n",
                                           xml_escaped(run.name), report_details(run));
  }
  html +=
      "<footer>Losses are in nats per token (natural logarithm); divided by 0.693 they are bits "
      "per token. Faint lines are single steps, strong ones their running median. Step times leave "
      "out evaluation and checkpoints.</footer>\n</main></body></html>\n";
  return html;
}

void write_report(const std::filesystem::path& file, std::span<const ReportedRun> runs) {
  io::AtomicFile out(file);
  out.write(render_report(runs));
  out.publish([&] { io::refuse_foreign_file(file, own_report); });  // what has come there meanwhile
}

}  // namespace fourfold::telemetry
