// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/picture.hpp>
#include <fourfold/base/text.hpp>

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <iterator>

namespace fourfold {

constexpr std::string_view picture_style =
    ":root{color-scheme:light "
    "dark;--page:#fff;--text:#1b1f26;--soft:#667085;--idle:#eef0f4;--axis:#d5d9e1;--rule:#e3e6ec;--"
    "font:system-ui,-apple-system,\"Segoe UI\",Roboto,\"Liberation "
    "Sans\",sans-serif}@media(prefers-color-scheme:dark){:root{--page:#15191f;--text:#e6e9ef;--"
    "soft:#98a2b3;--idle:#232933;--axis:#3a4250;--rule:#2c333d}}text{font:11px "
    "var(--font);fill:var(--soft);font-variant-numeric:tabular-nums}.title{font-size:17px;font-"
    "weight:650;fill:var(--text)}.sub{font-size:12.5px}.page{fill:var(--page)}.axis{stroke:var(--"
    "axis)}.grid{stroke:var(--rule)}.mid{text-anchor:middle}.end{text-anchor:end}";

std::string begin_picture(const PictureHead& head) {
  return fmt::format(
      "{6}xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" role=\"img\" aria-label=\"{2}\"><style>{4}{5}</style><rect "
      "class=\"page\" width=\"{0:.0f}\" height=\"{1:.0f}\" rx=\"10\"/>\n"
      "<text class=\"title\" x=\"20\" y=\"30\">{2}</text><text class=\"sub\" x=\"20\" "
      "y=\"49\">{3}</text>\n",
      head.width, head.height, xml_escaped(head.title), xml_escaped(head.subtitle), picture_style,
      head.style, head.opening);
}

double tick_distance(double range, int wanted) {
  const double raw = range / wanted;
  const double power = std::pow(10.0, std::floor(std::log10(raw)));
  const double leading = raw / power;
  return power * (leading < 1.5 ? 1 : leading < 3.5 ? 2 : leading < 7.5 ? 5 : 10);
}

std::vector<double> ticks_of(const AxisScale& scale, double step) {
  constexpr double rounding = 1e-6;  // of a step: a tick at an end of the axis is on it
  std::vector<double> ticks;
  for (double i = std::ceil(scale.low / step - rounding); i <= scale.high / step + rounding; ++i) {
    ticks.push_back(i * step + 0.0);  // no -0
  }
  return ticks;
}

std::string tick_text(double value) {
  constexpr const char* factors[] = {"", "k", "M", "G", "T"};
  std::size_t factor = 0;
  while (std::abs(value) >= 1000 && factor + 1 < std::size(factors)) {
    value /= 1000;
    ++factor;
  }
  return fmt::format("{:.4g}{}", value, factors[factor]);
}

std::string horizontal_axis(const AxisScale& scale, double y, double step,
                            const std::function<std::string(double)>& text) {
  std::string svg = fmt::format(
      "<line class=\"axis\" x1=\"{0:.1f}\" x2=\"{1:.1f}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/>",
      scale.begin, scale.end, y);
  for (const double tick : ticks_of(scale, step)) {
    svg += fmt::format(
        "<line class=\"axis\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\"/><text "
        "class=\"mid\" x=\"{0:.1f}\" y=\"{3:.1f}\">{4}</text>",
        scale.place(tick), y, y + 4, y + axis_text_foot, text(tick));
  }
  return svg;
}

}  // namespace fourfold
