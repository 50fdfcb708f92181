// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "progress.hpp"

#include <fourfold/base/log.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace fourfold::apps {
namespace {

using std::chrono::duration;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t bar_columns = 30;

}  // namespace

PrepareProgressDisplay::PrepareProgressDisplay(const std::string& style)
    : style_(Style::lines), start_(Clock::now()), last_(start_) {
  if (style == "none") {
    style_ = Style::none;
  } else if (style == "bar" || (style == "auto" && ::isatty(STDERR_FILENO) != 0)) {
    style_ = Style::bar;
  }
}

void PrepareProgressDisplay::show(const data::PrepareProgress& progress) {
  const auto now = Clock::now();
  const auto pause = style_ == Style::bar ? milliseconds(100) : milliseconds(seconds(10));
  if (style_ == Style::none || now - last_ < pause) {
    return;
  }
  last_ = now;
  const double done =
      static_cast<double>(progress.done_bytes) / static_cast<double>(progress.total_bytes);
  const double rate_mb =
      static_cast<double>(progress.done_bytes) / 1e6 / duration<double>(now - start_).count();
  const double left_s =
      static_cast<double>(progress.total_bytes - progress.done_bytes) / 1e6 / rate_mb;
  const std::string numbers =
      fmt::format("{:3.0f} %  {:.1f} of {:.1f} MB  {:.1f} Mtoken  {:.1f} MB/s  {:.0f} s left",
                  100 * done, static_cast<double>(progress.done_bytes) / 1e6,
                  static_cast<double>(progress.total_bytes) / 1e6,
                  static_cast<double>(progress.tokens) / 1e6, rate_mb, left_s);
  if (style_ == Style::bar) {
    const auto filled = std::min(bar_columns, static_cast<std::size_t>(done * bar_columns));
    log::write_stderr(
        fmt::format("\r[{:<{}}] {}\x1b[K", std::string(filled, '#'), bar_columns, numbers));
  } else {
    log::write_stderr(fmt::format("prepared {}\n", numbers));
  }
  std::fflush(stderr);
}

void PrepareProgressDisplay::finish() {
  if (style_ == Style::bar) {
    log::write_stderr(fmt::format("\r\x1b[K"));
  }
}

}  // namespace fourfold::apps
