// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/terminal.hpp>
#include <fourfold/program/count_progress.hpp>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <utility>

namespace fourfold::program {
namespace {

using std::chrono::duration;
using std::chrono::milliseconds;

std::size_t columns() {
  winsize size{};
  const bool is_known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return is_known ? size.ws_col - 1U : 79U;
}

}  // namespace

CountProgress::CountProgress(const std::string& style, std::string what, std::string unit)
    : what_(std::move(what)), unit_(std::move(unit)), start_(Clock::now()), last_(start_) {
  if (style == "none") {
    style_ = Style::none;
  } else if (style == "bar" || (style == "auto" && ::isatty(STDERR_FILENO) != 0)) {
    style_ = Style::drawn_over;
  }
}

CountProgress::~CountProgress() {
  finish();
}

void CountProgress::show(std::int64_t done, std::int64_t total, const std::string& more) {
  const auto now = Clock::now();
  const milliseconds pause = style_ == Style::drawn_over ? milliseconds(has_shown_ ? 100 : 0)
                                                         : milliseconds(has_shown_ ? 10000 : 1000);
  if (style_ == Style::none || now - last_ < pause || total <= 0) {
    return;
  }
  last_ = now;
  has_shown_ = true;
  const double rate = static_cast<double>(done) / duration<double>(now - start_).count();
  const std::string left =
      done > 0 ? fmt::format("  {:.3g} {}/s  {:.0f} s left", rate, unit_,
                             std::max(0.0, static_cast<double>(total - done) / rate))
               : "";
  const std::string numbers = fmt::format(
      "{}{}{:3.0f} %  {} of {} {}{}", more, more.empty() ? "" : "  ",
      100.0 * static_cast<double>(done) / static_cast<double>(total), done, total, unit_, left);
  if (style_ == Style::drawn_over) {
    is_drawn_ = true;
    log::draw_stderr(numbers.substr(0, columns()));
  } else {
    log::write_stderr(format_message("{} {}\n", what_, numbers));
  }
  std::fflush(stderr);
}

void CountProgress::finish() {
  if (std::exchange(is_drawn_, false)) {
    log::draw_stderr("");
  }
}

}  // namespace fourfold::program
