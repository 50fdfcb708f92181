// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Small line charts as SVG. Their looks come from a style sheet around them by class names: those
/// of picture_style, c0, c1, ... (colours), line, faint, dash, area, dot, gap and mark.
#pragma once

#include <fourfold/telemetry/step_curve.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::telemetry {

struct ChartSeries {
  enum class Style : std::uint8_t { line, faint, dashed, area };
  std::string name;       ///< in the legend and the tool tips; empty: not listed
  std::size_t color = 0;  ///< class c0, c1, ...
  Style style = Style::line;
  std::vector<ChartPoint> points = {};  ///< x rising
  bool has_dots = false;                ///< with tool tips, where there are not too many
};

struct Chart {
  std::string title;
  std::string x_label;
  std::string y_label;  ///< with unit
  bool y_from_zero = false;
  std::vector<ChartSeries> series = {};
  std::map<double, std::string> marks = {};  ///< labels of vertical lines, by x
  /// x is the logarithm to base 2 of a number of bytes, which stands at the axis; and no value is
  /// cut off.
  bool x_is_log2_bytes = false;
};

/// The drawing alone: an `<svg>` with axes, series and marks, or "no data yet" without a finite
/// point. The highest values are cut off where a few would flatten all others.
/// @param attributes  more of the element: place, size, name
std::string draw_chart(const Chart& chart, std::string_view attributes);

/// A `<figure>` with title, legend, drawing, and a note where values are cut off.
std::string render_chart(const Chart& chart);

/// "512 B", "64 KiB".
std::string binary_size_text(double bytes);

}  // namespace fourfold::telemetry
