// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "captured_stream.hpp"

#include <fourfold/base/log.hpp>
#include <fourfold/program/print.hpp>

#include <catch2/catch_test_macros.hpp>
#include <pty.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>
#include <string_view>
#include <system_error>

namespace program = fourfold::program;

namespace {

constexpr std::string_view hostile =
    "a\x1b]0;title\x07 b\xc2\x9b"
    "2J \u202e\xff\tc\n";
/// As part of a message, in which it may begin no line.
constexpr std::string_view harmless_part =
    "a\\u001b]0;title\\u0007 b\\u009b2J \\u202e\\xff\\u0009c\\u000a";
constexpr std::string_view harmless = "a\\u001b]0;title\\u0007 b\\u009b2J \\u202e\\xff\tc\n";

/// What `print` writes to a stdout that is a terminal, which turns \n into \r\n.
template <class Print>
std::string on_terminal(const Print& print) {
  int master = -1;
  int slave = -1;
  REQUIRE(::openpty(&master, &slave, nullptr, nullptr, nullptr) == 0);
  std::fflush(stdout);
  const int before = ::dup(STDOUT_FILENO);
  ::dup2(slave, STDOUT_FILENO);
  print();
  std::fflush(stdout);
  ::dup2(before, STDOUT_FILENO);
  ::close(before);
  std::array<char, 4096> buffer{};
  const ssize_t got = ::read(master, buffer.data(), buffer.size());
  ::close(slave);
  ::close(master);
  return {buffer.data(), static_cast<std::size_t>(got < 0 ? 0 : got)};
}

}  // namespace

TEST_CASE("what is printed holds nothing that a terminal obeys", "[print]") {
  CapturedStream out(stdout);
  program::print("{}|{}", 7, hostile);
  program::print_text(hostile);
  CHECK(out.text() == "7|" + std::string(harmless_part) + std::string(harmless));
  CapturedStream error(stderr);
  fourfold::log::write_stderr(hostile);
  CHECK(error.text() == harmless);
}

TEST_CASE("a line that is drawn has its own control characters only", "[print]") {
  CapturedStream error(stderr);
  fourfold::log::draw_stderr("50 % of a\x1b[2J\nb");
  fourfold::log::draw_stderr("");
  CHECK(error.text() == "\r50 % of a\\u001b[2J\\u000ab\x1b[K\r\x1b[K");
}

TEST_CASE("data is byte by byte what it was, but on a terminal", "[print]") {
  CapturedStream out(stdout);
  program::print_data(hostile);
  CHECK(out.text() == hostile);
  const std::string shown = on_terminal([] { program::print_data(hostile); });
  std::string lines(harmless);
  lines.insert(lines.size() - 1, "\r");
  CHECK(shown.substr(0, 20) == lines.substr(0, 20));  // the terminal expands the tab
  CHECK(shown.find('\x1b') == std::string::npos);
  CHECK(shown.find('\x07') == std::string::npos);
}
