// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "crash_job.hpp"

#include <catch2/catch_test_macros.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

namespace fourfold::io_test {

/// A job under the shim that stops itself at a call (crash_shim.cpp).
class StoppingJob {
 public:
  /// @param under  only calls below this folder count
  /// @param at     the call, from 1
  StoppingJob(const std::vector<std::string>& command, const std::filesystem::path& under,
              long at) {
    std::vector<char*> words;
    for (const std::string& word : command) {
      words.push_back(const_cast<char*>(word.c_str()));
    }
    words.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::setenv("LD_PRELOAD", crash_shim().c_str(), 1);
      ::setenv("FOURFOLD_CRASH_UNDER", under.c_str(), 1);
      ::setenv("FOURFOLD_CRASH_AT", std::to_string(at).c_str(), 1);
      ::setenv("FOURFOLD_CRASH_HOW", "stop", 1);
      if (std::freopen("/dev/null", "w", stderr) != nullptr) {
        ::execv(words.front(), words.data());
      }
      ::_exit(127);
    }
    REQUIRE(pid_ > 0);
  }
  ~StoppingJob() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      next_change();
    }
  }
  StoppingJob(const StoppingJob&) = delete;
  StoppingJob& operator=(const StoppingJob&) = delete;

  /// Waits until it stands still. @return false: it has ended before
  bool stands_still() {
    const int status = next_change();
    if (WIFSTOPPED(status)) {
      return true;
    }
    pid_ = 0;
    return false;
  }
  /// Lets it go on. @return its exit code
  int go_on() {
    ::kill(pid_, SIGCONT);
    const int status = next_change();
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  int next_change() const {
    int status = 0;
    while (::waitpid(pid_, &status, WUNTRACED) < 0 && errno == EINTR) {
    }
    return status;
  }
  pid_t pid_ = 0;
};

}  // namespace fourfold::io_test
