// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What pictures (SVG) have in common: their look, light or dark as the reader's screen, and axes.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold {

/// Rules of CSS that come first in a picture and in a page with pictures: colours and font as
/// variables; the classes page, title, sub (the text below it), mid (centred text), end
/// (right-aligned text), axis and grid (lines).
extern const std::string_view picture_style;

/// How a picture that stands alone begins.
struct PictureHead {
  double width = 0;
  double height = 0;
  std::string title;  ///< both from anywhere: they are escaped
  std::string subtitle;
  std::string style = {};              ///< rules after picture_style
  std::string_view opening = "<svg ";  ///< or more, which ends so
};
/// With the page and its titles, which take 60 units of the height. "</svg>" is to follow at last.
std::string begin_picture(const PictureHead& head);

/// What an axis shows, and where.
struct AxisScale {
  double low = 0;
  double high = 1;
  double begin = 0;  ///< where `low` is drawn
  double end = 0;
  double place(double value) const { return begin + (value - low) / (high - low) * (end - begin); }
};

/// Between ticks: 1, 2 or 5 times a power of ten, so that `range` has about `wanted` steps.
/// @pre range > 0 and wanted > 0
double tick_distance(double range, int wanted);

/// Multiples of `step` on the axis.
std::vector<double> ticks_of(const AxisScale& scale, double step);

/// Four digits: "2.5", "1.536k".
std::string tick_text(double value);

/// A line at height y, with a tick and a text below at each multiple of `step`.
std::string horizontal_axis(const AxisScale& scale, double y, double step,
                            const std::function<std::string(double)>& text = tick_text);
/// Below the line of an axis, the foot of its texts.
inline constexpr double axis_text_foot = 15;

}  // namespace fourfold
