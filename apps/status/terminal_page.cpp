// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "terminal_page.hpp"

#include <fourfold/base/text.hpp>
#include <fourfold/telemetry/console.hpp>

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace fourfold::status_program {
namespace {

constexpr std::array<int, 4> ending_signals{SIGINT, SIGTERM, SIGHUP, SIGQUIT};

winsize size_of_terminal() {
  constexpr unsigned short usual_rows = 24;
  constexpr unsigned short usual_columns = 80;
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0) {
    size.ws_row = usual_rows;
    size.ws_col = usual_columns;
  }
  return size;
}

sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : ending_signals) {
    sigaddset(&set, number);
  }
  sigaddset(&set, SIGTSTP);
  sigaddset(&set, SIGWINCH);
  return set;
}

void put(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

/// The begin of a line, without cutting a character in two.
std::string_view clipped(std::string_view line, std::size_t columns) {
  std::size_t at = 0;
  for (std::size_t column = 0; at < line.size() && column < columns; ++column) {
    at += std::max<std::size_t>(utf8_character_bytes(line.substr(at)), 1);
  }
  return line.substr(0, at);
}

}  // namespace

TerminalPage::TerminalPage() {
  // They wait until somebody asks: no write is cut in two, and no handler is needed.
  const sigset_t watched = watched_signals();
  ::pthread_sigmask(SIG_BLOCK, &watched, &usual_signals_);
  // Of a signal whose default is to be ignored nobody would be told.
  std::signal(SIGWINCH, [](int) {});
  enter();
}

TerminalPage::~TerminalPage() {
  leave();
  ::pthread_sigmask(SIG_SETMASK, &usual_signals_, nullptr);
}

bool TerminalPage::is_possible() {
  return telemetry::is_moving_terminal(stdout);
}

std::size_t TerminalPage::rows() {
  return size_of_terminal().ws_row;
}

void TerminalPage::enter() {
  put("\x1b[?1049h\x1b[?25l");  // second screen, no cursor
  on_second_screen_ = true;
}

void TerminalPage::leave() {
  if (on_second_screen_) {
    put("\x1b[?25h\x1b[?1049l");
  }
  on_second_screen_ = false;
}

void TerminalPage::draw(const std::vector<std::string>& lines) {
  const winsize size = size_of_terminal();
  std::string text = "\x1b[H";
  const std::size_t shown = std::min<std::size_t>(lines.size(), size.ws_row);
  for (std::size_t i = 0; i < shown; ++i) {
    text += clipped(printable(lines[i]), size.ws_col);
    text += "\x1b[K";
    text += i + 1 < shown ? "\r\n" : "";
  }
  put(text + "\x1b[J");
}

void TerminalPage::wait(double seconds) {
  const sigset_t watched = watched_signals();
  using std::chrono::nanoseconds;
  const auto time = std::chrono::duration_cast<nanoseconds>(std::chrono::duration<double>(seconds));
  const auto whole = std::chrono::floor<std::chrono::seconds>(time);
  const timespec limit{whole.count(), nanoseconds(time - whole).count()};
  const int received = ::sigtimedwait(&watched, nullptr, &limit);
  if (received > 0 && received != SIGWINCH) {
    obey(received);
  }
}

void TerminalPage::obey(int signal_number) {
  leave();
  // As if nobody had waited for it: whoever started this program sees which signal it was.
  std::signal(signal_number, SIG_DFL);
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signal_number);
  ::raise(signal_number);
  ::pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
  // Only a stop comes back from that.
  ::pthread_sigmask(SIG_BLOCK, &one, nullptr);
  enter();
}

}  // namespace fourfold::status_program
