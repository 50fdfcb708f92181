// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "captured_stream.hpp"

#include <fourfold/program/progress.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;
using fourfold::ProgressMode;

namespace {

std::string shown(ProgressMode mode) {
  CapturedStream captured(stderr);
  fourfold::program::Progress progress(mode, "copied");
  progress.show(1'000'000, 4'000'000);  // too early to say anything
  std::this_thread::sleep_for(std::chrono::milliseconds(150));
  progress.show(0, 0);
  progress.show(2'000'000, 4'000'000, "step 7");
  progress.finish();
  return captured.text();
}

}  // namespace

TEST_CASE("a bar shows bytes, rate and time left, and goes in the end", "[progress]") {
  const std::string text = shown(ProgressMode::bar);
  CHECK_THAT(text, ContainsSubstring("[###############               ]  50 %  2.0 of 4.0 MB  "
                                     "step 7  "));
  CHECK_THAT(text, ContainsSubstring(" MB/s  "));
  CHECK_THAT(text, EndsWith("\r\x1b[K"));
}

TEST_CASE("a bar is there before any byte is, and goes with what draws it", "[progress]") {
  CapturedStream captured(stderr);
  { const fourfold::program::Progress progress(ProgressMode::bar, "copied"); }
  const std::string text = captured.text();
  CHECK_THAT(text, ContainsSubstring("[                              ]   0 %"));
  CHECK_THAT(text, EndsWith("\r\x1b[K"));
}

TEST_CASE("a log gets its first line after a second and the next ten later", "[progress]") {
  CapturedStream captured(stderr);
  fourfold::program::Progress progress(ProgressMode::plain, "copied");
  std::this_thread::sleep_for(std::chrono::milliseconds(1050));
  progress.show(2'000'000, 4'000'000);
  progress.show(3'000'000, 4'000'000);
  const std::string text = captured.text();
  CHECK_THAT(text, ContainsSubstring("copied  50 %  2.0 of 4.0 MB"));
  CHECK(std::count(text.begin(), text.end(), '\n') == 1);
}

TEST_CASE("a log gets no line before a second, and nothing gets none", "[progress]") {
  CHECK(shown(ProgressMode::plain).empty());
  CHECK(shown(ProgressMode::none).empty());
  CHECK(shown(ProgressMode::automatic).empty());  // stderr is no terminal here
}

TEST_CASE("what is counted is shown from the beginning, and goes before other output",
          "[progress]") {
  CapturedStream captured(stderr);
  {
    fourfold::program::Progress progress(ProgressMode::bar, "evaluated", "samples");
    progress.show(0, 10);
    progress.show(1, 10);  // too soon to be seen
    progress.finish();
    progress.finish();
  }
  CHECK(captured.text() == "\r  0 %  0 of 10 samples\x1b[K\r\x1b[K");
  CapturedStream nothing(stderr);
  {
    fourfold::program::Progress none(ProgressMode::none, "evaluated", "samples");
    none.show(5, 10);
    fourfold::program::Progress lines(ProgressMode::plain, "evaluated", "samples");
    lines.show(5, 10);  // within the first second
  }
  CHECK(nothing.text().empty());
}
