// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "report_sections.hpp"
#include "step_statistics.hpp"
#include "svg_chart.hpp"

#include <fourfold/telemetry/human_text.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

namespace fourfold::telemetry {
namespace {

using Style = ChartSeries::Style;

constexpr int colors = 6;
constexpr std::size_t fewest_to_smooth = 40;

std::vector<ChartPoint> points_of(const ReportedRun& run, double StepRecord::*number) {
  std::vector<ChartPoint> points;
  points.reserve(run.history.steps.size());
  for (const auto& step : run.history.steps) {
    points.push_back({static_cast<double>(step.record.step), step.record.*number});
  }
  return points;
}

std::vector<ChartPoint> smoothed_points(std::vector<ChartPoint> points) {
  std::vector<double> values;
  std::ranges::transform(points, std::back_inserter(values), &ChartPoint::y);
  const std::size_t reach = std::clamp<std::size_t>(values.size() / 100, 2, 50);
  const std::vector<double> smooth = running_median(values, reach);
  for (std::size_t i = 0; i < points.size(); ++i) {
    points[i].y = smooth[i];
  }
  return points;
}

/// Restarts, when there is one run; the lines of several would say nothing.
std::vector<ChartMark> restarts(std::span<const ReportedRun> runs) {
  std::vector<ChartMark> marks;
  if (runs.size() == 1) {
    for (const auto& start : runs.front().history.starts) {
      if (start.record.first_step > 0) {
        marks.push_back({static_cast<double>(start.record.first_step), "restart"});
      }
    }
  }
  return marks;
}

/// A line per run; with a faint line of the raw values behind the smooth one where there are many.
void add_lines(std::span<const ReportedRun> runs, double StepRecord::*number,
               const std::string& single_name, Chart& chart) {
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::vector<ChartPoint> raw = points_of(runs[i], number);
    const std::string name = runs.size() == 1 ? single_name : runs[i].name;
    const int color = static_cast<int>(i) % colors;
    if (raw.size() < fewest_to_smooth) {
      chart.series.push_back({name, color, Style::line, raw});
    } else {
      chart.series.push_back({"", color, Style::faint, raw});
      chart.series.push_back({name, color, Style::line, smoothed_points(raw)});
    }
  }
}

Chart loss_chart(std::span<const ReportedRun> runs) {
  Chart chart{"Loss", "step", "nats per token", false, {}, restarts(runs)};
  add_lines(runs, &StepRecord::loss, "train", chart);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    std::vector<ChartPoint> points;
    for (const auto& evaluation : runs[i].history.evaluations) {
      points.push_back({static_cast<double>(evaluation.record.step), evaluation.record.loss});
    }
    if (!points.empty()) {
      const int color = runs.size() == 1 ? 1 : static_cast<int>(i) % colors;
      chart.series.push_back({runs.size() == 1 ? "validation" : "", color, Style::dotted, points});
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

Chart rate_chart(std::span<const ReportedRun> runs) {
  Chart chart{"Learning rate", "step", "", true, {}, restarts(runs)};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    chart.series.push_back({runs.size() == 1 ? "" : runs[i].name, static_cast<int>(i) % colors,
                            Style::line, points_of(runs[i], &StepRecord::lr)});
  }
  return chart;
}

/// Of the runs that have such a number, which is positive then; nothing when none has.
std::string optional_chart(std::span<const ReportedRun> runs, const char* title, const char* unit,
                           double StepRecord::*number) {
  Chart chart{title, "step", unit, true, {}, restarts(runs)};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto& steps = runs[i].history.steps;
    if (!steps.empty() && steps.back().record.*number > 0) {
      chart.series.push_back({runs.size() == 1 ? "" : runs[i].name, static_cast<int>(i) % colors,
                              Style::line, points_of(runs[i], number)});
    }
  }
  return chart.series.empty() ? std::string() : render_chart(chart);
}

std::vector<double> step_times(const ReportedRun& run, double units_per_s) {
  std::vector<double> times;
  times.reserve(run.history.steps.size());
  for (const auto& step : run.history.steps) {
    times.push_back(step.record.step_s * units_per_s);
  }
  return times;
}

/// Shares of steps by duration, in bins that all runs have in common; the slowest two percent are
/// left out.
Chart step_time_chart(std::span<const ReportedRun> runs) {
  std::vector<double> all;
  for (const ReportedRun& run : runs) {
    std::ranges::copy(step_times(run, 1), std::back_inserter(all));
  }
  const double units_per_s = percentile(all, 0.99) >= 1 ? 1 : 1e3;
  std::ranges::for_each(all, [=](double& time) { time *= units_per_s; });
  Chart chart{"Step time", units_per_s == 1 ? "s" : "ms", "% of steps", true, {}, {}};
  const double low = percentile(all, 0);
  const double high = percentile(all, 0.99);
  if (!std::isfinite(low)) {
    return chart;
  }
  const double margin = std::max((high - low) * 0.02, high * 0.001 + 1e-6);
  const auto bins =
      static_cast<std::size_t>(std::clamp(std::sqrt(static_cast<double>(all.size())), 6.0, 40.0));
  const double bin_width = (high - low + 2 * margin) / static_cast<double>(bins);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::vector<double> times = step_times(runs[i], units_per_s);
    std::vector<ChartPoint> edges;
    for (std::size_t bin = 0; bin <= bins; ++bin) {
      edges.push_back({low - margin + bin_width * static_cast<double>(bin), 0});
    }
    for (const double time : times) {
      const double place = std::floor((time - edges.front().x) / bin_width);
      if (place >= 0 && place < static_cast<double>(bins)) {
        edges[static_cast<std::size_t>(place)].y += 100.0 / static_cast<double>(times.size());
      }
    }
    chart.series.push_back(
        {runs.size() == 1 ? "" : runs[i].name, static_cast<int>(i) % colors, Style::area, edges});
  }
  if (runs.size() == 1) {
    chart.marks = {{percentile(all, 0.5), "p50"}, {percentile(all, 0.9), "p90"}, {high, "p99"}};
  }
  return chart;
}

}  // namespace

std::string report_charts(std::span<const ReportedRun> runs) {
  std::string html = "<section class=\"charts\">\n" + render_chart(loss_chart(runs));
  html += render_chart(rate_chart(runs));
  html += render_chart(
      step_chart(runs, "Gradient norm", "L2, before clipping", &StepRecord::grad_norm));
  html += optional_chart(runs, "Loss scale", "", &StepRecord::loss_scale);
  html += render_chart(
      step_chart(runs, "Throughput", "tokens/s, all ranks", &StepRecord::tokens_per_s));
  html += optional_chart(runs, "MFU", "share of the devices' peak", &StepRecord::mfu);
  html += render_chart(step_time_chart(runs));
  html += render_chart(step_chart(runs, "Waiting for data", "s per step", &StepRecord::data_s));
  return html + "</section>\n";
}

}  // namespace fourfold::telemetry
