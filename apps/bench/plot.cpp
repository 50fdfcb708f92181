// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "results.hpp"

#include <fourfold/base/picture.hpp>
#include <fourfold/telemetry/svg_chart.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::bench {
namespace {

constexpr int legend_left = 732;

/// Hues that stay apart for most eyes, on light and on dark.
constexpr std::array<std::string_view, 8> colors{"#2f6fde", "#d9622b", "#1f9d74", "#b0489d",
                                                 "#b58a12", "#4aa3c7", "#7a68d8", "#8a8f98"};

/// What comes after the style of all pictures. The chart, and so its text, is drawn larger.
std::string style() {
  std::string css =
      "text{font-size:7px}.name{font-size:12px;fill:var(--text)}.grid,.axis{stroke-width:.7}"
      ".line{fill:none;stroke:currentColor;stroke-width:1.4;stroke-linejoin:round;"
      "stroke-linecap:round}.dash{stroke-dasharray:3 3;stroke-width:1.1}"
      ".dot{fill:currentColor;stroke:var(--page);stroke-width:.8}"
      ".key{stroke:currentColor;stroke-width:3}";
  for (std::size_t i = 0; i < colors.size(); ++i) {
    css += fmt::format(".c{}{{color:{}}}", i, colors[i]);
  }
  return css;
}

std::string name_of(const Row& row) {
  const auto operation = name(row.operation);
  return has_algorithms(row.operation) ? fmt::format("{}, {}", operation, comm::name(row.algorithm))
                                       : std::string(operation);
}

/// The library's own line, where there is one, before ours, which has the name.
std::vector<telemetry::ChartSeries> series_of(const Setting& setting, std::span<const Row> rows) {
  using Style = telemetry::ChartSeries::Style;
  std::vector<telemetry::ChartSeries> all;
  std::size_t lines = 0;
  for (const Row& row : rows) {
    const std::string label = name_of(row);
    if (all.empty() || all.back().name != label) {
      const std::size_t color = lines++ % colors.size();
      all.push_back({.name = "", .color = color, .style = Style::dashed});
      all.push_back({.name = label, .color = color, .has_dots = true});
    }
    const double x = std::log2(static_cast<double>(row.extent.bytes));
    all.back().points.push_back({x, row.bus_gb_s(setting.ranks)});
    if (const auto library = row.library_bus_gb_s(setting.ranks)) {
      all[all.size() - 2].points.push_back({x, *library});
    }
  }
  std::erase_if(all, [](const telemetry::ChartSeries& each) { return each.points.empty(); });
  return all;
}

}  // namespace

std::string plot_svg(const Setting& setting, std::span<const Row> rows) {
  const telemetry::Chart chart{.title = fmt::format("Bus bandwidth, {} of {} ranks ({})",
                                                    setting.axis, setting.ranks, setting.transport),
                               .x_label = "size",
                               .y_label = "GB/s",
                               .y_from_zero = true,
                               .series = series_of(setting, rows),
                               .x_is_log2_bytes = true};
  std::string svg = begin_picture(
      {.width = 900,
       .height = 470,
       .title = chart.title,
       .subtitle = fmt::format(
           "{} in {}{}", chart.y_label, fourfold::name(setting.dtype),
           setting.library.empty() ? "" : "; dashed: " + setting.library + " by itself"),
       .style = style()});
  svg += draw_chart(chart, "x=\"0\" y=\"58\" width=\"712\" height=\"405\"") + "\n";
  int y = 86;
  for (const telemetry::ChartSeries& series : chart.series) {
    if (!series.name.empty()) {
      svg += fmt::format(
          "<line class=\"key c{0}\" x1=\"{1}\" x2=\"{2}\" y1=\"{3}\" y2=\"{3}\"/><text "
          "class=\"name\" x=\"{4}\" y=\"{5}\">{6}</text>\n",
          series.color, legend_left, legend_left + 20, y, legend_left + 28, y + 4, series.name);
      y += 22;
    }
  }
  return svg + "</svg>\n";
}

}  // namespace fourfold::bench
