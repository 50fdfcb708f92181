// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/picture.hpp>
#include <fourfold/base/text.hpp>
#include <fourfold/plan/timeline_svg.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

namespace fourfold::plan {
namespace {

using schedule::Action;
using schedule::ActionKind;
using schedule::Timeline;
using schedule::TimelineEvent;
using schedule::TimelineSummary;

constexpr double left = 64;
constexpr double right = 66;
constexpr double margin = 20;
constexpr double row_pitch = 30;
constexpr double row_height = 25;
constexpr double head_height = 78;
constexpr double panel_head = 26;
constexpr double axis_height = 34;
constexpr double digit_width = 6.2;

/// Colours by kind: hue and saturation; chunks differ in lightness.
struct Color {
  ActionKind kind;
  std::string_view css_class;
  std::string_view label;
  int hue;
  int saturation;
};
constexpr std::array colors{
    Color{ActionKind::forward, "f", "forward", 217, 72},
    Color{ActionKind::backward, "b", "backward", 20, 82},
    Color{ActionKind::backward_input, "i", "backward, input half", 33, 92},
    Color{ActionKind::backward_weight, "w", "backward, weight half", 158, 58},
};

const Color& color_of(ActionKind kind) {
  return *std::ranges::find(colors, kind, &Color::kind);
}

/// Of a chunk's cells, in percent: from strong to pale, evenly.
int lightness(int chunk, int chunks) {
  constexpr int strong = 44;
  constexpr int pale = 78;
  return chunks == 1 ? strong : strong + (pale - strong) * chunk / (chunks - 1);
}

/// What comes after the style of all pictures.
std::string style(int chunks) {
  std::string css =
      ".name{font-size:12.5px;font-weight:600;fill:var(--text)}.idle{fill:var(--idle)}"
      ".cells rect{stroke:var(--page);stroke-width:.9}"
      ".cells text{text-anchor:middle;pointer-events:none;fill:#fff}.cells .d{fill:#17202b}"
      ".n text{font-size:9.5px;letter-spacing:-.2px}";
  for (const Color& color : colors) {
    for (int chunk = 0; chunk < chunks; ++chunk) {
      css += fmt::format(".{}{}{{fill:hsl({},{}%,{}%)}}", color.css_class, chunk, color.hue,
                         color.saturation, lightness(chunk, chunks));
    }
  }
  return css;
}

class Picture {
 public:
  Picture(std::span<const Timeline> timelines, const Drawing& drawing)
      : timelines_(timelines), drawing_(drawing) {
    for (const Timeline& timeline : timelines) {
      const TimelineSummary& summary = summaries_.emplace_back(summarize(timeline));
      range_s_ = std::max(range_s_, summary.makespan_s());
      chunks_ = std::max(chunks_, timeline.chunks);
      height_ += panel_head + row_pitch * timeline.stages;
      for (const TimelineEvent& event : timeline.events) {
        const double length_s = event.end_s - event.begin_s;
        if (is_compute(event.action.kind) && length_s > 0) {
          shortest_s_ = std::min(shortest_s_, length_s);
        }
      }
    }
    range_s_ = range_s_ > 0 ? range_s_ : 1;
    if (drawing.unit == Drawing::Unit::seconds) {
      units_per_s_ = range_s_ >= 2 ? 1 : range_s_ >= 2e-3 ? 1e3 : 1e6;
      unit_ = range_s_ >= 2 ? "s" : range_s_ >= 2e-3 ? "ms" : "µs";
    }
    // Wide enough for two digits in the shortest cell, within reason.
    constexpr double wanted_cell = 15;
    chart_width_ = std::clamp(wanted_cell * range_s_ / shortest_s_, 760.0, 2600.0);
    width_ = left + chart_width_ + right;
  }

  std::string draw() {
    std::string svg = begin_picture({width_, height_, drawing_.title, drawing_.subtitle,
                                     style(chunks_), timeline_svg_mark}) +
                      legend();
    double y = head_height;
    for (std::size_t i = 0; i < timelines_.size(); ++i) {
      svg += panel(timelines_[i], summaries_[i], y);
      y += panel_head + row_pitch * timelines_[i].stages;
    }
    return svg + axis(y) + "</svg>\n";
  }

 private:
  double px(double time_s, const TimelineSummary& summary) const {
    return left + (time_s - summary.begin_s) / range_s_ * chart_width_;
  }

  bool uses(ActionKind kind) const {
    return std::ranges::any_of(timelines_, [&](const Timeline& timeline) {
      return std::ranges::any_of(
          timeline.events, [&](const TimelineEvent& event) { return event.action.kind == kind; });
    });
  }

  std::string legend() const {
    std::string svg;
    double x = margin;
    const double y = 62;
    const auto entry = [&](std::string_view css_class, std::string_view label) {
      svg += fmt::format(
          "<rect class=\"{}\" x=\"{:.1f}\" y=\"{}\" width=\"13\" height=\"13\" rx=\"3\"/>"
          "<text x=\"{:.1f}\" y=\"{}\">{}</text>",
          css_class, x, y, x + 18, y + 10.5, label);
      x += 34 + 5.9 * static_cast<double>(label.size());
    };
    for (const Color& color : colors) {
      if (uses(color.kind)) {
        entry(fmt::format("{}0", color.css_class), color.label);
      }
    }
    entry("idle", "bubble");
    x += 24;
    for (int chunk = 0; chunks_ > 1 && chunk < std::min(chunks_, 8); ++chunk) {
      entry(fmt::format("f{}", chunk), fmt::format("chunk {}", chunk));
    }
    return svg + "\n";
  }

  std::string panel(const Timeline& timeline, const TimelineSummary& summary, double top) const {
    std::string svg = fmt::format("<text class=\"name\" x=\"{}\" y=\"{:.0f}\">{}</text>", margin,
                                  top + 17, xml_escaped(timeline.name));
    svg += fmt::format("<text class=\"end\" x=\"{:.0f}\" y=\"{:.0f}\">bubble</text>\n",
                       width_ - margin, top + 17);
    const double end = px(summary.end_s, summary);
    for (int rank = 0; rank < timeline.stages; ++rank) {
      const double y = top + panel_head + row_pitch * rank;
      const double share =
          summary.makespan_s() > 0 ? 100 * summary.bubble_s(rank) / summary.makespan_s() : 0;
      svg += fmt::format(
          "<rect class=\"idle\" x=\"{}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{}\" rx=\"3\"/>"
          "<text class=\"end\" x=\"{}\" y=\"{:.1f}\">rank {}</text>"
          "<text class=\"end\" x=\"{:.0f}\" y=\"{:.1f}\">{:.1f} %</text>\n",
          left, y, end - left, row_height, left - 8, y + 16.5, rank, width_ - margin, y + 16.5,
          share);
    }
    const bool narrow = chart_width_ / range_s_ * shortest_s_ < 18;
    svg += narrow ? "<g class=\"cells n\">\n" : "<g class=\"cells\">\n";
    for (const TimelineEvent& event : timeline.events) {
      if (is_compute(event.action.kind)) {
        svg += cell(timeline, summary, event, top + panel_head + row_pitch * event.rank);
      }
    }
    return svg + "</g>\n";
  }

  std::string cell(const Timeline& timeline, const TimelineSummary& summary,
                   const TimelineEvent& event, double y) const {
    const Action& action = event.action;
    const double x = px(event.begin_s, summary);
    const double cell_width = px(event.end_s, summary) - x;
    std::string svg = fmt::format(
        "<rect class=\"{}{}\" x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{}\" rx=\"2.5\">"
        "<title>rank {}: {} of micro-batch {}, chunk {}; {:.6g} to {:.6g} {}</title></rect>",
        color_of(action.kind).css_class, action.chunk, x, y, cell_width, row_height, event.rank,
        name(action.kind), action.micro_batch, action.chunk,
        (event.begin_s - summary.begin_s) * units_per_s_,
        (event.end_s - summary.begin_s) * units_per_s_, unit_);
    const std::string number = fmt::format("{}", action.micro_batch);
    if (cell_width >= digit_width * static_cast<double>(number.size()) + 1.5) {
      const bool dark = lightness(action.chunk, timeline.chunks) > 60;
      svg += fmt::format("<text{} x=\"{:.2f}\" y=\"{:.1f}\">{}</text>", dark ? " class=\"d\"" : "",
                         x + cell_width / 2, y + 16.5, number);
    }
    return svg + "\n";
  }

  std::string axis(double y) const {
    const AxisScale times{0, range_s_ * units_per_s_, left, left + chart_width_};
    return horizontal_axis(times, y + 2,
                           tick_distance(times.high, static_cast<int>(chart_width_ / 90))) +
           fmt::format("<text class=\"end\" x=\"{}\" y=\"{:.1f}\">{}</text>\n", left - 12,
                       y + 2 + axis_text_foot,
                       drawing_.unit == Drawing::Unit::own ? "time" : unit_);
  }

  std::span<const Timeline> timelines_;
  const Drawing& drawing_;
  std::vector<TimelineSummary> summaries_;
  double range_s_ = 0;
  double units_per_s_ = 1;
  std::string_view unit_ = "units of time";
  double shortest_s_ = std::numeric_limits<double>::infinity();
  int chunks_ = 1;
  double chart_width_ = 0;
  double width_ = 0;
  double height_ = head_height + axis_height;
};

}  // namespace

bool is_older_timeline_svg(std::string_view beginning) {
  constexpr std::string_view style_head =  // of all versions
      ":root{color-scheme:light dark;--page:#fff;--text:#1b1f26;--soft:#667085;--idle:#eef0f4;";
  constexpr std::string_view plans_mark = "<!-- made by fourfold plan -->\n";
  if (beginning.starts_with(plans_mark)) {
    beginning.remove_prefix(plans_mark.size());
  }
  return beginning.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ") &&
         beginning.find(style_head) != std::string_view::npos;
}

std::string timeline_svg(std::span<const Timeline> timelines, const Drawing& drawing) {
  std::size_t actions = 0;
  for (const Timeline& timeline : timelines) {
    actions += std::ranges::count_if(
        timeline.events, [](const TimelineEvent& event) { return is_compute(event.action.kind); });
  }
  if (actions > most_drawn_actions) {
    throw UserError(
        ExitCode::config,
        format_message("{} actions are too many for a picture (they would be thinner than "
                       "a line); draw {} or fewer, or write the trace",
                       actions, most_drawn_actions));
  }
  return Picture(timelines, drawing).draw();
}

}  // namespace fourfold::plan
