// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/enum_name.hpp>
#include <fourfold/base/picture.hpp>
#include <fourfold/base/text.hpp>
#include <fourfold/telemetry/step_curve.hpp>
#include <fourfold/telemetry/svg_chart.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <string_view>

namespace fourfold::telemetry {
namespace {

constexpr double width = 440;
constexpr double height = 250;
constexpr double left = 52;
constexpr double right = 12;
constexpr double top = 16;
constexpr double bottom = 38;
constexpr std::size_t most_points = 700;  // of one line: more than the eye resolves

/// What can be drawn: beyond it differences overflow.
bool is_drawable(double value) {
  return std::abs(value) <= 1e30;
}

/// No numbers yet.
constexpr double none = std::numeric_limits<double>::infinity();

/// Both axes.
struct Frame {
  AxisScale x = {none, -none, left, width - right};
  AxisScale y = {none, -none, height - bottom, top};
  double cut_off = 0;  ///< highest value that is not shown; 0: all are

  bool empty() const { return x.low > x.high || y.low > y.high; }
  double px(double value) const { return x.place(value); }
  double py(double value) const { return y.place(std::clamp(value, y.low, y.high)); }
};

void include(double value, AxisScale& scale) {
  if (is_drawable(value)) {
    scale.low = std::min(scale.low, value);
    scale.high = std::max(scale.high, value);
  }
}

void widen(AxisScale& scale, double margin_share) {
  const double range = scale.high - scale.low;
  const bool flat = range <= 1e-9 * std::abs(scale.high);
  const double margin = !flat ? range * margin_share : std::max(std::abs(scale.low) * 0.1, 1e-12);
  scale.low -= margin;
  scale.high += margin;
}

Frame frame_of(const Chart& chart) {
  Frame frame;
  std::vector<double> heights;
  for (const ChartSeries& series : chart.series) {
    for (const ChartPoint& point : series.points) {
      include(point.x, frame.x);
      include(point.y, frame.y);
      heights.push_back(point.y);
    }
  }
  if (frame.empty()) {
    return frame;
  }
  const double usual = percentile(heights, 0.98);
  const double lowest = chart.y_from_zero ? std::min(frame.y.low, 0.0) : frame.y.low;
  if (!chart.x_is_log2_bytes && frame.y.high - lowest > 4 * (usual - lowest) && usual > lowest) {
    frame.cut_off = frame.y.high;
    frame.y.high = lowest + 1.5 * (usual - lowest);
  }
  widen(frame.y, 0.05);
  if (chart.y_from_zero) {
    frame.y.low = lowest;
  }
  widen(frame.x, 0);
  return frame;
}

/// At most most_points of them: of each stretch the lowest and the highest, so that spikes stay.
std::vector<ChartPoint> thinned(std::span<const ChartPoint> points) {
  if (points.size() <= most_points) {
    return {points.begin(), points.end()};
  }
  const std::size_t stretches = most_points / 2;
  std::vector<ChartPoint> kept;
  for (std::size_t i = 0; i < stretches; ++i) {
    const auto stretch =
        points.subspan(i * points.size() / stretches,
                       (i + 1) * points.size() / stretches - i * points.size() / stretches);
    auto [low, high] = std::ranges::minmax_element(stretch, {}, &ChartPoint::y);
    if (high < low) {
      std::swap(low, high);
    }
    kept.push_back(*low);
    if (low != high) {
      kept.push_back(*high);
    }
  }
  return kept;
}

/// The path of a line, new from the start after each gap. A lone point becomes a dot by its round
/// cap.
std::string path_of(const ChartSeries& series, const Frame& frame) {
  std::vector<ChartPoint> finite_run;
  std::string path;
  const auto draw_run = [&] {
    const std::vector<ChartPoint> points = thinned(finite_run);
    for (std::size_t i = 0; i < points.size(); ++i) {
      path += fmt::format("{}{:.1f} {:.1f}", i == 0 ? "M" : "L", frame.px(points[i].x),
                          frame.py(points[i].y));
    }
    if (points.size() == 1) {
      path += "h0.01";
    }
    finite_run.clear();
  };
  for (const ChartPoint& point : series.points) {
    if (is_drawable(point.y)) {
      finite_run.push_back(point);
    } else {
      draw_run();
    }
  }
  draw_run();
  return path;
}

/// Bars side by side: points are the left edges, the last one only ends the one before.
std::string area_of(const ChartSeries& series, const Frame& frame) {
  std::string path;
  for (std::size_t i = 0; i + 1 < series.points.size(); ++i) {
    path += fmt::format("{}{:.1f} {:.1f}H{:.1f}", i == 0 ? "M" : "L", frame.px(series.points[i].x),
                        frame.py(series.points[i].y), frame.px(series.points[i + 1].x));
  }
  const double floor_y = frame.py(0);
  return path.empty() ? path
                      : fmt::format("M{:.1f} {:.1f}L{}V{:.1f}Z", frame.px(series.points.front().x),
                                    floor_y, path.substr(1), floor_y);
}

std::string x_text(const Chart& chart, double x) {
  return chart.x_is_log2_bytes ? binary_size_text(std::exp2(x)) : tick_text(x);
}

std::string draw_series(const Chart& chart, const ChartSeries& series, const Frame& frame) {
  constexpr std::array<std::string_view, 4> classes{"line", "line faint", "line dash", "area"};
  const bool area = series.style == ChartSeries::Style::area;
  std::string svg =
      fmt::format("<path class=\"{} c{}\" d=\"{}\"/>", name_in(classes, series.style), series.color,
                  area ? area_of(series, frame) : path_of(series, frame));
  constexpr std::size_t most_dots = 200;
  const bool dots = series.has_dots && series.points.size() <= most_dots;
  int gaps = 0;
  for (const ChartPoint& point : series.points) {
    if (!is_drawable(point.y) && gaps < 100) {
      ++gaps;
      svg += fmt::format(
          "<path class=\"gap\" d=\"M{:.1f} {:.1f}l-4 -7h8z\"><title>not finite at "
          "{:g}</title></path>",
          frame.px(point.x), top + 7, point.x);
    } else if (dots && is_drawable(point.y)) {
      svg += fmt::format(
          "<circle class=\"dot c{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"2.6\"><title>{}: {:.5g} {}"
          "</title></circle>",
          series.color, frame.px(point.x), frame.py(point.y),
          xml_escaped((series.name.empty() ? "" : series.name + ", ") +
                      (chart.x_is_log2_bytes ? x_text(chart, point.x)
                                             : fmt::format("{} {:g}", chart.x_label, point.x))),
          point.y, xml_escaped(chart.y_label));
    }
  }
  return svg;
}

std::string draw_axes(const Chart& chart, const Frame& frame) {
  std::string svg;
  for (const double value : ticks_of(frame.y, tick_distance(frame.y.high - frame.y.low, 5))) {
    svg += fmt::format("<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>",
                       left, width - right, frame.py(value), frame.py(value));
    svg += fmt::format("<text class=\"end\" x=\"{}\" y=\"{:.1f}\">{}</text>", left - 6,
                       frame.py(value) + 4, tick_text(value));
  }
  constexpr int x_ticks = 6;  // whose texts do not touch
  const double x_range = frame.x.high - frame.x.low;
  const double x_step = chart.x_is_log2_bytes ? std::max(1.0, std::ceil(x_range / x_ticks))
                                              : tick_distance(x_range, x_ticks);
  svg +=
      horizontal_axis(frame.x, height - bottom, x_step, [&](double x) { return x_text(chart, x); });
  svg += fmt::format("<text class=\"mid\" x=\"{}\" y=\"{}\">{}</text>", (left + width - right) / 2,
                     height - 6, xml_escaped(chart.x_label));
  return svg;
}

std::string draw_marks(const Chart& chart, const Frame& frame) {
  std::string svg;
  double line_y = top - 5;
  for (const auto& [at, label] : chart.marks) {
    if (!(at >= frame.x.low && at <= frame.x.high)) {
      continue;
    }
    const double x = frame.px(at);
    svg += fmt::format("<line class=\"mark\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/>",
                       x, top, height - bottom);
    svg += fmt::format("<text class=\"mid\" x=\"{:.1f}\" y=\"{}\">{}</text>",
                       std::clamp(x, left + 10, width - 22), line_y, xml_escaped(label));
  }
  return svg;
}

std::string legend(const Chart& chart) {
  std::string html;
  for (const ChartSeries& series : chart.series) {
    if (!series.name.empty()) {
      html += fmt::format("<span><i class=\"key c{}\"></i>{}</span>", series.color,
                          xml_escaped(series.name));
    }
  }
  return html;
}

}  // namespace

std::string draw_chart(const Chart& chart, std::string_view attributes) {
  const Frame frame = frame_of(chart);
  std::string svg = fmt::format("<svg viewBox=\"0 0 {} {}\" {}>", width, height, attributes);
  if (frame.empty()) {
    svg += fmt::format("<text class=\"mid\" x=\"{}\" y=\"{}\">no data yet</text>", width / 2,
                       height / 2);
  } else {
    svg += draw_axes(chart, frame);
    for (const ChartSeries& series : chart.series) {
      svg += draw_series(chart, series, frame);
    }
    svg += draw_marks(chart, frame);
  }
  return svg + "</svg>";
}

std::string render_chart(const Chart& chart) {
  const std::string title = xml_escaped(chart.title);
  std::string html = fmt::format("<figure><figcaption><b>{}</b> <small>{}</small>{}</figcaption>",
                                 title, xml_escaped(chart.y_label), legend(chart));
  html += draw_chart(chart, fmt::format("role=\"img\" aria-label=\"{}\"", title));
  if (const double highest = frame_of(chart).cut_off; highest > 0) {
    html += fmt::format("<p class=\"note\">cut off at the top: highest value {:.4g}</p>", highest);
  }
  return html + "</figure>\n";
}

std::string binary_size_text(double bytes) {
  constexpr std::array<std::string_view, 4> units{"B", "KiB", "MiB", "GiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < units.size()) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{:g} {}", std::round(bytes * 10) / 10, units[unit]);
}

}  // namespace fourfold::telemetry
