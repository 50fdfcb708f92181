// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace CLI {
class App;
}

namespace fourfold::program {

/// Shows on stderr how much of some bytes is done, how fast, and how long the rest will take: a bar
/// that is drawn over itself on a terminal, from the beginning; elsewhere a line after a second and
/// then every ten, so that log files stay short. Make it before what may take long, also before the
/// bytes are known.
class ByteProgress {
 public:
  /// @param style  "auto" (a bar if stderr is a terminal, else lines), "bar", "plain" or "none"
  /// @param what   a line's first word: "prepared"
  ByteProgress(const std::string& style, std::string what);
  /// @param more  what else there is to say, put behind the bytes
  void show(std::int64_t done_bytes, std::int64_t total_bytes, const std::string& more = "");
  /// Removes the bar; show() draws it again. Before anything else is printed.
  void finish();
  ~ByteProgress();
  ByteProgress(const ByteProgress&) = delete;
  ByteProgress& operator=(const ByteProgress&) = delete;

 private:
  enum class Style { bar, lines, none };
  using Clock = std::chrono::steady_clock;

  void draw(const std::string& numbers, double done);

  Style style_;
  bool has_line_ = false;
  bool has_bar_ = false;  ///< on the terminal now
  std::string what_;
  Clock::time_point start_;
  Clock::time_point last_;
};

/// The option --progress of programs that use it.
void add_progress_option(CLI::App& command, std::string& style);

}  // namespace fourfold::program
