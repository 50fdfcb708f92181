// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace fourfold::program {

/// Shows on stderr how many of some things are done, how fast, and how long the rest will take: on
/// a terminal a line that is drawn over itself, from the beginning; elsewhere a line after a second
/// and then every ten.
class CountProgress {
 public:
  /// @param style  "auto" (drawn over if stderr is a terminal, else lines), "bar", "plain" or
  /// "none"
  /// @param what   a line's first word: "evaluated"
  /// @param unit   of what is counted: "samples"
  CountProgress(const std::string& style, std::string what, std::string unit);
  ~CountProgress();
  CountProgress(const CountProgress&) = delete;
  CountProgress& operator=(const CountProgress&) = delete;

  /// @param more  what else there is to say, put in front
  void show(std::int64_t done, std::int64_t total, const std::string& more = "");
  /// Takes the line away; show() draws it again. Before anything else is printed.
  void finish();

 private:
  enum class Style : std::uint8_t { drawn_over, lines, none };
  using Clock = std::chrono::steady_clock;

  Style style_ = Style::lines;
  bool has_shown_ = false;
  bool is_drawn_ = false;  ///< on the terminal now
  std::string what_;
  std::string unit_;
  Clock::time_point start_;
  Clock::time_point last_;
};

}  // namespace fourfold::program
