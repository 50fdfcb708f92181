// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <stdexcept>
#include <string>

namespace fourfold::harness {

/// Stops this process, with all its threads, for so many seconds, as a batch system suspends a job.
inline void stand_still(int seconds) {
  std::string shell = "sh";
  std::string option = "-c";
  std::string text = "kill -STOP $PPID; sleep " + std::to_string(seconds) + "; kill -CONT $PPID";
  const std::array<char*, 4> words{shell.data(), option.data(), text.data(), nullptr};
  pid_t child = 0;
  if (::posix_spawn(&child, "/bin/sh", nullptr, nullptr, words.data(), environ) != 0 ||
      ::waitpid(child, nullptr, 0) != child) {
    throw std::runtime_error("nothing could stop this process");
  }
}

}  // namespace fourfold::harness
