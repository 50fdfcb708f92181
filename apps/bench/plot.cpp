// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "results.hpp"

#include <fourfold/base/amount.hpp>
#include <fourfold/base/text.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace fourfold::bench {
namespace {

constexpr double width = 900;
constexpr double height = 470;
constexpr double left = 62;
constexpr double right = 190;
constexpr double top = 76;
constexpr double bottom = 58;
constexpr double plot_right = width - right;
constexpr double plot_bottom = height - bottom;

/// Hues that stay apart for most eyes, on light and on dark.
constexpr std::array<std::string_view, 8> colors{"#2f6fde", "#d9622b", "#1f9d74", "#b0489d",
                                                 "#b58a12", "#4aa3c7", "#7a68d8", "#8a8f98"};

constexpr std::string_view style =
    "<style>:root{color-scheme:light dark;--page:#fff;--text:#1b1f26;--soft:#667085;--rule:#e3e6ec}"
    "@media(prefers-color-scheme:dark){:root{--page:#15191f;--text:#e6e9ef;--soft:#98a2b3;"
    "--rule:#2c333d}}"
    "text{font:11px system-ui,-apple-system,\"Segoe UI\",Roboto,\"Liberation Sans\",sans-serif;"
    "fill:var(--soft);font-variant-numeric:tabular-nums}"
    ".title{font-size:17px;font-weight:650;fill:var(--text)}.sub{font-size:12.5px}"
    ".name{font-size:12px;fill:var(--text)}.page{fill:var(--page)}"
    ".rule{stroke:var(--rule);stroke-width:1}.m{text-anchor:middle}.e{text-anchor:end}"
    ".line{fill:none;stroke-width:2.2;stroke-linejoin:round;stroke-linecap:round}"
    ".library{stroke-dasharray:5 5;stroke-width:1.8}.dot{stroke:var(--page);stroke-width:1.2}"
    "</style>";

/// "8 B", "64 KiB".
std::string size_text(double bytes) {
  constexpr std::array<std::string_view, 4> units{"B", "KiB", "MiB", "GiB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < units.size()) {
    bytes /= 1024;
    ++unit;
  }
  return fmt::format("{:g} {}", std::round(bytes * 10) / 10, units[unit]);
}

struct Point {
  double bytes = 0;
  double gb_s = 0;
};

/// A line of the picture.
struct Series {
  std::string name;
  std::vector<Point> ours;
  std::vector<Point> library;
};

std::string name_of(const Row& row) {
  const auto operation = name(row.operation);
  return has_algorithms(row.operation) ? fmt::format("{}, {}", operation, comm::name(row.algorithm))
                                       : std::string(operation);
}

std::vector<Series> series_of(const Setting& setting, std::span<const Row> rows) {
  std::vector<Series> all;
  for (const Row& row : rows) {
    const std::string label = name_of(row);
    if (all.empty() || all.back().name != label) {
      all.push_back({.name = label, .ours = {}, .library = {}});
    }
    const auto bytes = static_cast<double>(row.extent.bytes);
    all.back().ours.push_back({bytes, row.bus_gb_s(setting.ranks)});
    if (const auto library = row.library_bus_gb_s(setting.ranks)) {
      all.back().library.push_back({bytes, *library});
    }
  }
  return all;
}

class Picture {
 public:
  explicit Picture(std::vector<Series> series) : series_(std::move(series)) {
    for (const Series& each : series_) {
      for (const std::vector<Point>* points : {&each.ours, &each.library}) {
        for (const Point& point : *points) {
          low_ = std::min(low_, std::log2(point.bytes));
          high_ = std::max(high_, std::log2(point.bytes));
          most_ = std::max(most_, point.gb_s);
        }
      }
    }
    low_ = std::floor(std::min(low_, high_));
    high_ = std::max(std::ceil(high_), low_ + 1);
    most_ = most_ > 0 ? most_ * 1.06 : 1;
  }

  std::string draw(const Setting& setting) const {
    const std::string title = fmt::format("Bus bandwidth, {} of {} ranks ({})", setting.axis,
                                          setting.ranks, setting.transport);
    std::string svg = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" "
        "width=\"{0:.0f}\" height=\"{1:.0f}\" role=\"img\" aria-label=\"{2}\">{3}"
        "<rect class=\"page\" width=\"{0:.0f}\" height=\"{1:.0f}\" rx=\"10\"/>\n"
        "<text class=\"title\" x=\"20\" y=\"30\">{2}</text>"
        "<text class=\"sub\" x=\"20\" y=\"50\">{4}{5}</text>\n",
        width, height, xml_escaped(title), style, fourfold::name(setting.dtype),
        setting.library.empty() ? "" : "; dashed: " + xml_escaped(setting.library) + " by itself");
    svg += vertical_axis() + horizontal_axis();
    for (std::size_t i = 0; i < series_.size(); ++i) {
      svg += lines(series_[i], colors[i % colors.size()]);
      svg += legend(series_[i], colors[i % colors.size()], i);
    }
    return svg + "</svg>\n";
  }

 private:
  double px(double bytes) const {
    return left + (std::log2(bytes) - low_) / (high_ - low_) * (plot_right - left);
  }
  double py(double gb_s) const { return plot_bottom - gb_s / most_ * (plot_bottom - top); }

  std::string vertical_axis() const {
    std::string svg;
    const double step = tick_distance(most_, 5);
    for (int i = 0; i * step <= most_; ++i) {
      svg += fmt::format(
          "<line class=\"rule\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>"
          "<text class=\"e\" x=\"{3}\" y=\"{4:.1f}\">{5:.4g}</text>\n",
          left, plot_right, py(i * step), left - 8, py(i * step) + 4, i * step);
    }
    return svg + fmt::format("<text x=\"{}\" y=\"{}\">GB/s</text>\n", 20, top - 6);
  }

  /// Powers of two, so many that their names do not touch.
  std::string horizontal_axis() const {
    std::string svg;
    const int every =
        std::max(1, static_cast<int>(std::ceil((high_ - low_) * 56 / (plot_right - left))));
    for (int power = static_cast<int>(low_); power <= static_cast<int>(high_); power += every) {
      const double bytes = std::exp2(power);
      svg += fmt::format(
          "<line class=\"rule\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/>"
          "<text class=\"m\" x=\"{0:.1f}\" y=\"{3}\">{4}</text>\n",
          px(bytes), plot_bottom, plot_bottom + 5, plot_bottom + 19, size_text(bytes));
    }
    return svg + fmt::format("<text class=\"m\" x=\"{}\" y=\"{}\">size</text>\n",
                             (left + plot_right) / 2, plot_bottom + 40);
  }

  std::string path(std::span<const Point> points) const {
    std::string d;
    for (const Point& point : points) {
      d += fmt::format("{}{:.1f} {:.1f}", d.empty() ? "M" : "L", px(point.bytes), py(point.gb_s));
    }
    return d;
  }

  std::string lines(const Series& series, std::string_view color) const {
    std::string svg;
    if (!series.library.empty()) {
      svg += fmt::format("<path class=\"line library\" stroke=\"{}\" d=\"{}\"/>\n", color,
                         path(series.library));
    }
    svg += fmt::format("<path class=\"line\" stroke=\"{}\" d=\"{}\"/>\n", color, path(series.ours));
    for (const Point& point : series.ours) {
      svg += fmt::format(
          "<circle class=\"dot\" fill=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.4\"><title>{}, {}: "
          "{:.4g} GB/s</title></circle>\n",
          color, px(point.bytes), py(point.gb_s), series.name, size_text(point.bytes), point.gb_s);
    }
    return svg;
  }

  static std::string legend(const Series& series, std::string_view color, std::size_t index) {
    const double y = top + 10 + 22 * static_cast<double>(index);
    return fmt::format(
        "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2}\" y2=\"{2}\" stroke=\"{3}\" stroke-width=\"3\"/>"
        "<text class=\"name\" x=\"{4}\" y=\"{5}\">{6}</text>\n",
        plot_right + 22, plot_right + 42, y, color, plot_right + 50, y + 4, series.name);
  }

  std::vector<Series> series_;
  double low_ = 64;  ///< log2 of the smallest size
  double high_ = 0;  ///< and of the largest
  double most_ = 0;  ///< GB/s at the top
};

}  // namespace

std::string plot_svg(const Setting& setting, std::span<const Row> rows) {
  return Picture(series_of(setting, rows)).draw(setting);
}

}  // namespace fourfold::bench
