// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/terminal.hpp>
#include <fourfold/program/byte_progress.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <utility>

namespace fourfold::program {
namespace {

using std::chrono::duration;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t bar_columns = 30;

}  // namespace

ByteProgress::ByteProgress(const std::string& style, std::string what)
    : style_(Style::lines), what_(std::move(what)), start_(Clock::now()), last_(start_) {
  if (style == "none") {
    style_ = Style::none;
  } else if (style == "bar" || (style == "auto" && ::isatty(STDERR_FILENO) != 0)) {
    style_ = Style::bar;
    draw(fmt::format("{:3.0f} %", 0.0), 0);
  }
}

void ByteProgress::draw(const std::string& numbers, double done) {
  const auto filled = std::min(bar_columns, static_cast<std::size_t>(done * bar_columns));
  log::draw_stderr(fmt::format("[{:<{}}] {}", std::string(filled, '#'), bar_columns, numbers));
  has_bar_ = true;
}

void ByteProgress::show(std::int64_t done_bytes, std::int64_t total_bytes,
                        const std::string& more) {
  const auto now = Clock::now();
  const milliseconds pause = style_ == Style::bar ? milliseconds(100)
                             : has_line_          ? milliseconds(seconds(10))
                                                  : milliseconds(seconds(1));
  if (style_ == Style::none || now - last_ < pause || done_bytes <= 0 || total_bytes <= 0) {
    return;
  }
  last_ = now;
  const double done =
      std::min(1.0, static_cast<double>(done_bytes) / static_cast<double>(total_bytes));
  const double rate_mb =
      static_cast<double>(done_bytes) / 1e6 / duration<double>(now - start_).count();
  const double left_s =
      std::max(0.0, static_cast<double>(total_bytes - done_bytes) / 1e6 / rate_mb);
  const std::string numbers =
      fmt::format("{:3.0f} %  {:.1f} of {:.1f} MB{}{}  {:.1f} MB/s  {:.0f} s left", 100 * done,
                  static_cast<double>(done_bytes) / 1e6, static_cast<double>(total_bytes) / 1e6,
                  more.empty() ? "" : "  ", more, rate_mb, left_s);
  if (style_ == Style::bar) {
    draw(numbers, done);
  } else {
    has_line_ = true;
    log::write_stderr(format_message("{} {}\n", what_, numbers));
    std::fflush(stderr);
  }
}

void ByteProgress::finish() {
  if (has_bar_) {
    has_bar_ = false;
    log::draw_stderr("");
  }
}

ByteProgress::~ByteProgress() {
  finish();
}

void add_progress_option(CLI::App& command, std::string& style) {
  command
      .add_option("--progress", style,
                  "A bar on a terminal and lines elsewhere, or one of these always")
      ->check(CLI::IsMember({"auto", "bar", "plain", "none"}))
      ->type_name("STYLE");
}

}  // namespace fourfold::program
