// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/fatal_exit.hpp>

#include <array>
#include <atomic>
#include <mutex>
#include <utility>

namespace fourfold {

namespace {

std::mutex mutex;
OnSuddenEnd::Tell the_tell;  // NOLINT(cert-err58-cpp): its constructor does not throw

OnSuddenEnd::Tell take_tell() {
  const std::scoped_lock lock(mutex);
  return std::exchange(the_tell, nullptr);
}

}  // namespace

OnSuddenEnd::OnSuddenEnd(Tell tell) {
  const std::scoped_lock lock(mutex);
  the_tell = std::move(tell);
}

OnSuddenEnd::~OnSuddenEnd() {
  take_tell();
}

void tell_fatal_exit(ExitCode code, const std::string& why) noexcept {
  try {
    if (const OnSuddenEnd::Tell tell = take_tell()) {
      tell(code, why);
    }
  } catch (...) {  // the process ends anyway
  }
}

namespace {

constexpr std::array ending{SIGHUP,  SIGINT,  SIGQUIT, SIGTERM,   SIGUSR1, SIGUSR2,
                            SIGXCPU, SIGPIPE, SIGALRM, SIGVTALRM, SIGPROF};

std::atomic<AtEndBySignal> at_end = nullptr;
static_assert(std::atomic<AtEndBySignal>::is_always_lock_free, "a signal handler reads it");

extern "C" void clean_up_and_end(int number) {
  if (const AtEndBySignal clean_up = at_end.load()) {
    clean_up();
  }
  std::signal(number, SIG_DFL);
  std::raise(number);  // waits until this handler returns, and is not caught then
}

}  // namespace

void set_at_end_by_signal(AtEndBySignal clean_up) noexcept {
  at_end = clean_up;
}

void clean_up_on_signals(bool ignores_hangup) noexcept {
  if (ignores_hangup) {
    std::signal(SIGHUP, SIG_IGN);
  }
  for (const int number : ending) {
    struct sigaction before {};
    if (sigaction(number, nullptr, &before) == 0 && before.sa_handler != SIG_IGN) {
      struct sigaction action {};
      action.sa_handler = clean_up_and_end;
      sigaction(number, &action, nullptr);
    }
  }
}

HeldSignals::HeldSignals() noexcept {
  sigset_t held;
  sigemptyset(&held);
  for (const int number : ending) {
    sigaddset(&held, number);
  }
  pthread_sigmask(SIG_BLOCK, &held, &before_);
}

HeldSignals::~HeldSignals() {
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace fourfold
