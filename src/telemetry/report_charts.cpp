// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "report_sections.hpp"

#include <fourfold/telemetry/human_text.hpp>
#include <fourfold/telemetry/svg_chart.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

namespace fourfold::telemetry {
namespace {

using Style = ChartSeries::Style;

constexpr std::size_t colors = 6;
constexpr std::int64_t fewest_to_smooth = 40;

/// Restarts, when there is one run; the lines of several would say nothing.
std::map<double, std::string> restarts(std::span<const ReportedRun> runs) {
  std::map<double, std::string> marks;
  if (runs.size() == 1) {
    for (const RunHistory::Start& start : runs.front().history.starts) {
      if (start.first_step > 0) {
        marks.emplace(start.first_step, "restart");
      }
    }
  }
  return marks;
}

/// A line per run; with a faint line of the raw values under the smooth one where there are many.
void add_lines(std::span<const ReportedRun> runs, double StepRecord::*number,
               const std::string& single_name, Chart& chart) {
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const StepCurve& curve = runs[i].history.curve(number);
    const std::string name = runs.size() == 1 ? single_name : runs[i].name;
    const std::size_t color = i % colors;
    if (curve.steps() < fewest_to_smooth) {
      chart.series.push_back({name, color, Style::line, curve.values()});
    } else {
      chart.series.push_back({"", color, Style::faint, curve.values()});
      chart.series.push_back({name, color, Style::line, curve.smoothed()});
    }
  }
}

Chart loss_chart(std::span<const ReportedRun> runs) {
  Chart chart{"Loss", "step", "nats per token", false, {}, restarts(runs)};
  add_lines(runs, &StepRecord::loss, "train", chart);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::vector<ChartPoint> points = runs[i].history.validation.values();
    if (!points.empty()) {
      const std::size_t color = runs.size() == 1 ? 1 : i % colors;
      chart.series.push_back(
          {runs.size() == 1 ? "validation" : "", color, Style::dashed, points, true});
    }
  }
  return chart;
}

Chart step_chart(std::span<const ReportedRun> runs, const char* title, const char* unit,
                 double StepRecord::*number) {
  Chart chart{title, "step", unit, true, {}, restarts(runs)};
  add_lines(runs, number, "", chart);
  return chart;
}

/// As they are, not smoothed. @param is_optional  of the runs that have such a number, which is
/// positive then; nothing when none has
std::string raw_chart(std::span<const ReportedRun> runs, const char* title, const char* unit,
                      double StepRecord::*number, bool is_optional) {
  Chart chart{title, "step", unit, true, {}, restarts(runs)};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto& last_step = runs[i].history.last_step;
    if (!is_optional || (last_step && *last_step.*number > 0)) {
      chart.series.push_back({runs.size() == 1 ? "" : runs[i].name, i % colors, Style::line,
                              runs[i].history.curve(number).values()});
    }
  }
  return chart.series.empty() ? std::string() : render_chart(chart);
}

/// Shares of steps by duration, in bins that all runs have in common; the slowest two percent are
/// left out.
Chart step_time_chart(std::span<const ReportedRun> runs) {
  ValueDistribution all;
  for (const ReportedRun& run : runs) {
    all.add(run.history.step_times);
  }
  const double units_per_s = all.percentile(0.99) >= 1 ? 1 : 1e3;
  Chart chart{"Step time", units_per_s == 1 ? "s" : "ms", "% of steps", true, {}, {}};
  const double low = all.percentile(0) * units_per_s;
  const double high = all.percentile(0.99) * units_per_s;
  if (!std::isfinite(low)) {
    return chart;
  }
  const double margin = std::max((high - low) * 0.02, high * 0.001 + 1e-6);
  const double wanted_bins = std::sqrt(static_cast<double>(all.count()));
  const auto bins = static_cast<int>(std::clamp(wanted_bins, 6.0, 40.0));
  const double bin_width = (high - low + 2 * margin) / bins;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const ValueDistribution& times = runs[i].history.step_times;
    std::vector<ChartPoint> edges;
    for (int bin = 0; bin <= bins; ++bin) {
      edges.push_back({low - margin + bin_width * bin, 0});
    }
    for (const auto& [time_s, steps] : times.buckets()) {
      const double place = std::floor((time_s * units_per_s - edges.front().x) / bin_width);
      if (place >= 0 && place < bins) {
        edges[static_cast<int>(place)].y += 100 * steps / static_cast<double>(times.count());
      }
    }
    chart.series.push_back({runs.size() == 1 ? "" : runs[i].name, i % colors, Style::area, edges});
  }
  if (runs.size() == 1) {
    chart.marks = {{all.percentile(0.5) * units_per_s, "p50"},
                   {all.percentile(0.9) * units_per_s, "p90"},
                   {high, "p99"}};
  }
  return chart;
}

}  // namespace

std::string report_charts(std::span<const ReportedRun> runs) {
  std::string html = "<section class=\"charts\">\n" + render_chart(loss_chart(runs));
  html += raw_chart(runs, "Learning rate", "", &StepRecord::lr, false);
  html += render_chart(
      step_chart(runs, "Gradient norm", "L2, before clipping", &StepRecord::grad_norm));
  html += raw_chart(runs, "Loss scale", "", &StepRecord::loss_scale, true);
  html += render_chart(
      step_chart(runs, "Throughput", "tokens/s, all ranks", &StepRecord::tokens_per_s));
  html += raw_chart(runs, "MFU", "share of the devices' peak", &StepRecord::mfu, true);
  html += render_chart(step_time_chart(runs));
  html += render_chart(step_chart(runs, "Waiting for data", "s per step", &StepRecord::data_s));
  return html + "</section>\n";
}

}  // namespace fourfold::telemetry
