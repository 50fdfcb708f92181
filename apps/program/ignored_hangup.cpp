// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0

#include <fourfold/program/run.hpp>

#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>

namespace fourfold::program {
namespace {

bool was_ignored = false;

struct KernelAction {  // of rt_sigaction
  void (*handler)(int);
  unsigned long flags;
  void (*restorer)();
  std::uint64_t mask;
};

}  // namespace

/// By the kernel's call: nothing of a sanitizer is ready then.
__attribute__((no_sanitize("address", "thread", "undefined"))) void ask_about_hangup(
    int /*argc*/, char** /*argv*/, char** /*environment*/) {
  KernelAction action{};
  const long failed = ::syscall(SYS_rt_sigaction, SIGHUP, nullptr, &action, sizeof action.mask);
  was_ignored = failed == 0 && action.handler == SIG_IGN;
}

bool hangup_was_ignored() noexcept {
  return was_ignored;
}

}  // namespace fourfold::program
