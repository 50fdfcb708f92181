// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/progress_mode.hpp>

#include <chrono>
#include <cstdint>
#include <string>

namespace CLI {
class App;
}

namespace fourfold::program {

/// Shows on stderr how much of something is done, how fast, and how long the rest will take: on a
/// terminal a line that is drawn over itself, from the beginning, with a bar where bytes are
/// counted; elsewhere a line after a second and then every ten, so that log files stay short. Make
/// it before what may take long, also before it is known how much there is.
class Progress {
 public:
  /// @param mode  automatic: a bar if stderr is a terminal, else plain
  /// @param what  a line's first word: "prepared"
  /// @param unit  of what is counted: "samples"; empty: bytes, shown as MB
  Progress(ProgressMode mode, std::string what, std::string unit = "");
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// @param more  what else there is to say: after the bytes, before what is counted
  void show(std::int64_t done, std::int64_t total, const std::string& more = "");
  /// Takes the line away; show() draws it again. Before anything else is printed.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;

  bool counts_bytes() const noexcept { return unit_.empty(); }
  /// Whether enough time has passed since the last time that something was shown.
  bool is_due(Clock::time_point now) const;
  void draw(double done, const std::string& numbers);

  ProgressMode mode_;  ///< never automatic
  bool has_shown_ = false;
  bool is_drawn_ = false;  ///< on the terminal now
  std::string what_;
  std::string unit_;
  Clock::time_point start_;
  Clock::time_point last_;
};

/// --progress of a program that shows it.
void add_progress_option(CLI::App& command, ProgressMode& mode);

}  // namespace fourfold::program
