// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <array>
#include <cstdio>
#include <string>

/// What is written to stdout or stderr while it lives.
class CapturedStream {
 public:
  /// @param stream  stdout or stderr
  explicit CapturedStream(std::FILE* stream)
      : stream_(stream), file_(std::tmpfile()), before_(::dup(::fileno(stream))) {
    std::fflush(stream_);
    ::dup2(::fileno(file_), ::fileno(stream_));
  }
  ~CapturedStream() {
    if (before_ >= 0) {
      text();
    }
    std::fclose(file_);
  }
  CapturedStream(const CapturedStream&) = delete;
  CapturedStream& operator=(const CapturedStream&) = delete;

  /// Ends it.
  std::string text() {
    std::fflush(stream_);
    ::dup2(before_, ::fileno(stream_));
    ::close(before_);
    before_ = -1;
    std::rewind(file_);
    std::array<char, 4096> buffer{};
    return {buffer.data(), std::fread(buffer.data(), 1, buffer.size(), file_)};
  }

 private:
  std::FILE* stream_;
  std::FILE* file_;
  int before_;
};
