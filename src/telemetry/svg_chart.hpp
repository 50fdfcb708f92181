// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Small line charts as inline SVG. Colours and text sizes come from the style sheet of the page by
/// class names.
#pragma once

#include <fourfold/telemetry/step_curve.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fourfold::telemetry {

struct ChartSeries {
  enum class Style : std::uint8_t { line, faint, dotted, area };
  std::string name;       ///< in the legend; empty: not listed
  std::size_t color = 0;  ///< class c0, c1, ...
  Style style = Style::line;
  std::vector<ChartPoint> points;  ///< x rising
};

/// A labelled vertical line.
struct ChartMark {
  double x = 0;
  std::string label;
};

struct Chart {
  std::string title;
  std::string x_label;
  std::string y_label;  ///< with unit
  bool y_from_zero = false;
  std::vector<ChartSeries> series;
  std::vector<ChartMark> marks;
};

/// A <figure> with title, legend and drawing; says "no data yet" without a finite point. The
/// highest values are cut off, with a note, where a few would flatten all others.
std::string render_chart(const Chart& chart);

}  // namespace fourfold::telemetry
