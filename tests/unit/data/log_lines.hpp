// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/log.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace fourfold::harness {

/// The lines of the log while it lives, which go nowhere else.
class LogLines {
 public:
  LogLines()
      : before_(log::set_sink(
            [this](log::Level, std::string_view line) { lines.emplace_back(line); })) {}
  LogLines(const LogLines&) = delete;
  LogLines& operator=(const LogLines&) = delete;
  ~LogLines() { log::set_sink(before_); }

  std::vector<std::string> lines;

 private:
  log::Sink before_;
};

}  // namespace fourfold::harness
