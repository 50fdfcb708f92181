// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "report_sections.hpp"

#include <fourfold/base/process_identity.hpp>
#include <fourfold/base/text.hpp>
#include <fourfold/telemetry/human_text.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <numbers>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace fourfold::telemetry {
namespace {

std::string steps_text(const RunHistory& history) {
  return fmt::format("{} / {}", history.last_step ? history.last_step->step : 0,
                     history.last_start ? history.last_start->record.steps : 0);
}

std::string tokens_text(const RunHistory& history) {
  return count_text(history.last_step ? history.last_step->tokens : 0);
}

/// Of the steps: "812ms".
std::string step_time_text(const RunHistory& history, double share) {
  return duration_text(history.step_times.percentile(share));
}

std::string number(double value) {
  return std::isnan(value) ? "–" : fmt::format("{:.4f}", value);
}
std::string rate(double value) {
  return std::isnan(value) ? "–" : count_text(value);
}
std::string percent(double share) {
  return std::isnan(share) ? "–" : fmt::format("{:.1f}%", 100 * share);
}

/// What MFU is, with the numbers of the run.
std::string mfu_text(const RunStart& run) {
  return fmt::format(
      "MFU, median: 6N + 6LhT = {:.4g} GFLOP per token against {:.4g} TFLOP/s a rank",
      run.flop_per_token / 1e9, run.peak_flop_per_s / 1e12);
}

/// How the run stands, as a word and the class it is coloured with.
std::pair<std::string, const char*> state_of(const ReportedRun& run) {
  const auto& end = run.history.last_end;
  if (!end) {
    return {"no end recorded", ""};
  }
  if (end->record.code == ExitCode::finished) {
    return {"finished", "good"};
  }
  return {fmt::format("ended with code {}", end->record.code),
          end->record.code == ExitCode::stopped_saved ? "" : "bad"};
}

std::string tile(const std::string& value, const std::string& what) {
  return fmt::format("<div class=\"tile\"><b>{}</b><span>{}</span></div>\n", xml_escaped(value),
                     xml_escaped(what));
}

std::string row(const std::vector<std::string>& cells, const char* tag, std::size_t text_cells) {
  std::string html = "<tr>";
  for (std::size_t i = 0; i < cells.size(); ++i) {
    html += fmt::format("<{0}{1}>{2}</{0}>", tag, i < text_cells ? "" : " class=\"n\"",
                        xml_escaped(cells[i]));
  }
  return html + "</tr>\n";
}

/// A table whose first `text_cells` columns are text and whose others are numbers.
std::string table(const std::vector<std::string>& head,
                  const std::vector<std::vector<std::string>>& rows, std::size_t text_cells) {
  std::string html = "<div class=\"scroll\"><table>\n" + row(head, "th", text_cells);
  for (const auto& cells : rows) {
    html += row(cells, "td", text_cells);
  }
  return html + "</table></div>\n";
}

/// As an image of its own, whose style stays its own and whose scripts nobody runs.
std::string picture(std::string_view svg, const char* what) {
  constexpr std::string_view safe = "-_.~ :;,/=()";
  std::string url = "data:image/svg+xml,";
  for (const char c : svg) {
    const unsigned char byte = c;
    const bool plain = byte < 0x80 && (std::isalnum(byte) != 0 || safe.find(c) != safe.npos);
    url += plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return fmt::format(
      "<figure class=\"scroll\"><img class=\"timeline\" src=\"{}\" alt=\"{}\"/></figure>\n", url,
      what);
}

std::string section(const char* title, const std::string& body) {
  return fmt::format("<h2>{}</h2>\n{}", title, body);
}

/// Says how many rows a table leaves out.
std::string earlier_text(std::int64_t all, std::int64_t shown) {
  const std::int64_t earlier = all - shown;
  return earlier > 0
             ? fmt::format("<p class=\"note\">{} earlier ones are not shown.</p>\n", earlier)
             : "";
}

std::string starts_table(const RunHistory& history) {
  std::vector<std::vector<std::string>> rows;
  rows.reserve(history.starts.size());
  for (const RunHistory::Start& start : history.starts) {
    rows.push_back({time_text(start.unix_time_s), start.mesh,
                    start.checkpoint.empty() ? "new run" : start.checkpoint,
                    fmt::format("{}", start.first_step), fmt::format("{}", start.steps),
                    fmt::format("{}", start.ranks)});
  }
  return table({"started", "mesh", "from", "at step", "to step", "ranks"}, rows, 3) +
         earlier_text(history.all_starts, history.starts.size());
}

std::string hosts_table(const RunStart& run) {
  std::vector<std::pair<std::string, std::vector<int>>> hosts;
  std::map<std::string, std::size_t> place;
  for (int rank = 0; rank < std::ssize(run.rank_hosts); ++rank) {
    const auto [found, is_new] = place.try_emplace(run.rank_hosts[rank], hosts.size());
    if (is_new) {
      hosts.emplace_back(run.rank_hosts[rank], std::vector<int>{});
    }
    hosts[found->second].second.push_back(rank);
  }
  std::vector<std::vector<std::string>> rows;
  rows.reserve(hosts.size());
  for (const auto& [host, ranks] : hosts) {
    rows.push_back({host, ranges_text(ranks, "–"), fmt::format("{}", ranks.size())});
  }
  return table({"node", "ranks", "number"}, rows, 2);
}

std::string versions_table(const RunStart& run) {
  std::vector<std::vector<std::string>> rows{{"fourfold", run.version}};
  for (const auto& [name, version] : run.libraries) {
    rows.push_back({name, version});
  }
  if (!run.device.empty()) {
    rows.push_back({"device", run.device});
  }
  return table({"what", "version"}, rows, 2);
}

std::string checkpoints_table(const RunHistory& history) {
  std::vector<std::vector<std::string>> rows;
  rows.reserve(history.checkpoints.size());
  for (const auto& checkpoint : history.checkpoints) {
    rows.push_back({time_text(checkpoint.unix_time_s), checkpoint.record.path,
                    fmt::format("{}", checkpoint.record.step), bytes_text(checkpoint.record.bytes),
                    duration_text(checkpoint.record.save_s),
                    duration_text(checkpoint.record.committed_s)});
  }
  return table({"saved", "path", "step", "size", "training stood still", "on disk after"}, rows,
               2) +
         earlier_text(history.all_checkpoints, history.checkpoints.size());
}

std::string memory_table(const MemoryRecord& memory) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [use, bytes] : memory.planned_bytes) {
    if (bytes > 0) {
      rows.push_back({use, bytes_text(bytes)});
    }
  }
  rows.push_back({"planned, together", bytes_text(memory.all_planned_bytes())});
  rows.push_back({"taken, at most", bytes_text(memory.taken_bytes)});
  if (memory.device_total_bytes > 0) {
    rows.push_back({fmt::format("in use at the end, of {} that the device has",
                                bytes_text(memory.device_total_bytes)),
                    bytes_text(memory.device_used_bytes)});
  }
  return table({fmt::format("memory of rank {}", memory.rank), "bytes"}, rows, 1);
}

std::string folded(const char* title, const std::string& body) {
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n", title, body);
}

}  // namespace

std::string report_summary(const ReportedRun& run) {
  const auto [state, state_class] = state_of(run);
  std::string html = fmt::format("<h1>{} <span class=\"state {}\">{}</span></h1>\n",
                                 xml_escaped(run.name), state_class, xml_escaped(state));
  if (run.history.last_start) {
    const RunStart& start = run.history.last_start->record;
    html += fmt::format(
        "<div class=\"soft\">{} parameters · {} · {} · {} ranks · started {}</div>\n",
        count_text(start.parameters), xml_escaped(start.precision), xml_escaped(start.mesh),
        start.rank_hosts.size(), time_text(run.history.first_start->unix_time_s));
  }
  if (run.history.last_end && run.history.last_end->record.code != ExitCode::finished) {
    html += fmt::format("<p>{}</p>\n", xml_escaped(run.history.last_end->record.reason));
  }
  const RunHistory& history = run.history;
  const std::string best =
      std::isnan(history.best_validation)
          ? "validation loss"
          : fmt::format("best validation loss, at step {}", history.best_validation_step);
  html += "<div class=\"tiles\">\n";
  html += tile(steps_text(history), "steps");
  if (history.skipped_steps) {
    html += tile(fmt::format("{}", *history.skipped_steps), "of them skipped: f16 overflowed");
  }
  html += tile(number(history.loss_at_end()), "training loss at the end");
  html += tile(number(history.best_validation), best);
  html += tile(number(history.best_validation / std::numbers::ln2), "bits per validation token");
  html += tile(tokens_text(history), "tokens trained on");
  html += tile(rate(history.rates.percentile(0.5)), "tokens/s, median");
  if (const double mfu = history.utilizations.percentile(0.5);
      !std::isnan(mfu) && history.last_start) {
    html += tile(percent(mfu), mfu_text(history.last_start->record));
  }
  html += tile(step_time_text(history, 0.5), "step time p50");
  html += tile(fmt::format("{} / {}", step_time_text(history, 0.9), step_time_text(history, 0.99)),
               "step time p90 / p99");
  return html + "</div>\n";
}

std::string report_comparison(std::span<const ReportedRun> runs) {
  std::vector<std::vector<std::string>> rows;
  for (const ReportedRun& run : runs) {
    const RunHistory& history = run.history;
    rows.push_back({run.name, state_of(run).first, steps_text(history),
                    number(history.loss_at_end()), number(history.best_validation),
                    tokens_text(history), rate(history.rates.percentile(0.5)),
                    percent(history.utilizations.percentile(0.5)), step_time_text(history, 0.5),
                    step_time_text(history, 0.9), step_time_text(history, 0.99)});
  }
  std::string html = "<h1>Comparison of runs</h1>\n";
  html += table({"run", "state", "steps", "train loss", "best validation", "tokens", "tokens/s",
                 "MFU", "p50", "p90", "p99"},
                rows, 2);
  std::vector<std::vector<std::string>> changes;
  const std::optional<runfile::RunConfig>& first = runs.front().config;
  for (const ReportedRun& run : runs.subspan(1)) {
    if (!first || !run.config) {
      continue;
    }
    for (const runfile::ConfigChange& change : runfile::config_difference(*first, *run.config)) {
      changes.push_back({run.name, change.key, change.before, change.after});
    }
  }
  if (!changes.empty()) {
    html += section("Configuration against the first run",
                    table({"run", "key", runs.front().name, "here"}, changes, 4));
  }
  return html;
}

std::string report_details(const ReportedRun& run) {
  const RunHistory& history = run.history;
  std::string html;
  if (!run.timeline_svg.empty()) {
    html += section("Pipeline", picture(run.timeline_svg, "A traced step, measured and planned"));
  }
  if (history.last_start) {
    html += section("Starts", starts_table(history));
    html += section("Nodes of the last start", hosts_table(history.last_start->record));
  }
  if (history.last_memory) {
    html += section("Memory", memory_table(history.last_memory->record));
  }
  if (!history.checkpoints.empty()) {
    html += folded("Checkpoints", checkpoints_table(history));
  }
  if (history.last_start) {
    html += folded("Versions", versions_table(history.last_start->record));
  }
  if (!run.config_toml.empty()) {
    html += folded("Configuration", fmt::format("<pre>{}</pre>\n", xml_escaped(run.config_toml)));
  }
  if (history.damaged_lines > 0) {
    html += fmt::format("<p class=\"note\">{} damaged lines of metrics.jsonl were left out.</p>\n",
                        history.damaged_lines);
  }
  return html;
}

}  // namespace fourfold::telemetry
