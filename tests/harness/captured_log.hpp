// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/log.hpp>

#include <mutex>
#include <string>

namespace fourfold::harness {

/// Keeps warnings and errors of all threads as long as it lives.
class CapturedLog {
 public:
  CapturedLog()
      : previous_(log::set_sink([this](log::Level level, std::string_view line) {
          if (level >= log::Level::warning) {
            const std::scoped_lock lock(mutex_);
            text_.append(line).append("\n");
          }
        })) {}
  CapturedLog(const CapturedLog&) = delete;
  CapturedLog& operator=(const CapturedLog&) = delete;
  ~CapturedLog() { log::set_sink(previous_); }

  std::string text() const {
    const std::scoped_lock lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
  log::Sink previous_;
};

}  // namespace fourfold::harness
