// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/program/command_line.hpp>
#include <fourfold/program/progress.hpp>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace fourfold::program {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t bar_columns = 30;

/// Of a line that is drawn over; the last column would start the next.
std::size_t columns() {
  winsize size{};
  const bool is_known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return is_known ? size.ws_col - 1U : 79U;
}

/// "50 %  2.0 of 4.0 MB  step 7  1.5 MB/s  1 s left"
std::string text_of_bytes(double done, double total, const std::string& more, double seconds) {
  const double rate = done / seconds;
  return fmt::format("{:3.0f} %  {:.1f} of {:.1f} MB{}{}  {:.1f} MB/s  {:.0f} s left",
                     100 * std::min(1.0, done / total), done / 1e6, total / 1e6,
                     more.empty() ? "" : "  ", more, rate / 1e6,
                     std::max(0.0, (total - done) / rate));
}

/// "step 7  50 %  2 of 4 samples  1.5 samples/s  1 s left"; how fast it is shows with the first
/// one.
std::string text_of_count(double done, double total, const std::string& unit,
                          const std::string& more, double seconds) {
  const std::string left = done > 0
                               ? fmt::format("  {:.3g} {}/s  {:.0f} s left", done / seconds, unit,
                                             std::max(0.0, (total - done) * seconds / done))
                               : "";
  return fmt::format("{}{}{:3.0f} %  {:.0f} of {:.0f} {}{}", more, more.empty() ? "" : "  ",
                     100.0 * done / total, done, total, unit, left);
}

}  // namespace

Progress::Progress(ProgressMode mode, std::string what, std::string unit)
    : mode_(mode),
      what_(std::move(what)),
      unit_(std::move(unit)),
      start_(Clock::now()),
      last_(start_) {
  if (mode_ == ProgressMode::automatic) {
    mode_ = ::isatty(STDERR_FILENO) != 0 ? ProgressMode::bar : ProgressMode::plain;
  }
  if (mode_ == ProgressMode::bar && counts_bytes()) {
    draw(0, fmt::format("{:3.0f} %", 0.0));
  }
}

Progress::~Progress() {
  finish();
}

bool Progress::is_due(Clock::time_point now) const {
  const milliseconds pause = mode_ == ProgressMode::bar ? milliseconds(has_shown_ ? 100 : 0)
                                                        : milliseconds(has_shown_ ? 10'000 : 1000);
  return mode_ != ProgressMode::none && now - last_ >= pause;
}

void Progress::draw(double done, const std::string& numbers) {
  const auto filled = std::min(bar_columns, static_cast<std::size_t>(done * bar_columns));
  const std::string bar =
      counts_bytes() ? fmt::format("[{:<{}}] ", std::string(filled, '#'), bar_columns) : "";
  has_shown_ = true;
  is_drawn_ = true;
  log::draw_stderr((bar + numbers).substr(0, columns()));
}

void Progress::show(std::int64_t done_count, std::int64_t total_count, const std::string& more) {
  const auto done = static_cast<double>(done_count);
  const auto total = static_cast<double>(total_count);
  const auto now = Clock::now();
  if (!is_due(now) || total <= 0 || (counts_bytes() && done <= 0)) {
    return;
  }
  last_ = now;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const std::string numbers = counts_bytes() ? text_of_bytes(done, total, more, seconds)
                                             : text_of_count(done, total, unit_, more, seconds);
  if (mode_ == ProgressMode::bar) {
    draw(std::min(1.0, done / total), numbers);
  } else {
    has_shown_ = true;
    log::write_stderr(format_message("{} {}\n", what_, numbers));
  }
  std::fflush(stderr);
}

void Progress::finish() {
  if (std::exchange(is_drawn_, false)) {
    log::draw_stderr("");
  }
}

void add_progress_option(CLI::App& command, ProgressMode& mode) {
  add_named_option(command, "--progress", mode,
                   "A bar on a terminal and lines elsewhere, or one of these always")
      ->type_name("STYLE");
}

}  // namespace fourfold::program
