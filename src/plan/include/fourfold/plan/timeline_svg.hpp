// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/schedule/timeline.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace fourfold::plan {

struct Drawing {
  std::string title;
  std::string subtitle;
  /// Whether times are seconds (the axis says ms, µs, ...) or a unit of their own.
  enum class Unit { seconds, own } unit = Unit::seconds;
};

/// More compute actions than this are not drawn: nobody could see them.
inline constexpr std::size_t most_drawn_actions = 100'000;

/// How every picture begins.
inline constexpr std::string_view timeline_svg_mark = "<!-- made by fourfold -->\n<svg ";

/// Whether a picture begins as earlier versions wrote it: with another mark, or with none.
bool is_older_timeline_svg(std::string_view beginning);

/// One picture that stands alone, light or dark as the reader's screen: under each other a panel
/// per timeline on the same axis of time; in it a row per rank, its compute actions coloured by
/// kind and shaded by chunk, with the micro-batch's number where it fits and all of it as a tool
/// tip. What is not filled is bubble; its share stands at the end of the row.
/// @throws UserError (config) for more than most_drawn_actions
std::string timeline_svg(std::span<const schedule::Timeline> timelines, const Drawing& drawing);

}  // namespace fourfold::plan
