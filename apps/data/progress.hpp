// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/data/prepare.hpp>

#include <chrono>
#include <string>

namespace fourfold::apps {

/// Shows how far `fourfold data prepare` is, on stderr: a bar that is drawn over itself on a
/// terminal, a line every ten seconds elsewhere, so that log files stay short.
class PrepareProgressDisplay {
 public:
  /// @param style  "auto" (a bar if stderr is a terminal, else lines), "bar", "plain" or "none"
  explicit PrepareProgressDisplay(const std::string& style);
  void show(const data::PrepareProgress& progress);
  /// Removes the bar.
  void finish();

 private:
  enum class Style { bar, lines, none };
  using Clock = std::chrono::steady_clock;

  Style style_;
  Clock::time_point start_;
  Clock::time_point last_;
};

}  // namespace fourfold::apps
