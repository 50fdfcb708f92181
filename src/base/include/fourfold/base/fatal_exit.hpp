// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/error.hpp>

#include <csignal>
#include <functional>
#include <string>

namespace fourfold {

/// What a program has to say before it ends, when not its main thread ends it: that one waits for
/// what will never come. There while this object is; one at a time.
class OnSuddenEnd {
 public:
  using Tell = std::function<void(ExitCode code, const std::string& why)>;

  /// @param tell  called by any thread, once, perhaps while the main thread goes on
  explicit OnSuddenEnd(Tell tell);
  ~OnSuddenEnd();
  OnSuddenEnd(const OnSuddenEnd&) = delete;
  OnSuddenEnd& operator=(const OnSuddenEnd&) = delete;
};

/// For who ends the process: says so, where the program wants to know. At most once, whoever calls.
void tell_fatal_exit(ExitCode code, const std::string& why) noexcept;

/// What has to be done before a signal ends the process. It runs in a signal handler: it may call
/// only what is async-signal-safe (signal-safety(7)), and must not throw.
using AtEndBySignal = void (*)();

/// Sets what is done; one function per process, whoever sets it last. From any thread.
void set_at_end_by_signal(AtEndBySignal clean_up) noexcept;

/// Installs handlers for the signals that ask a program to end (HUP, INT, QUIT, TERM, USR1, USR2,
/// XCPU), or end it because nobody reads it or a timer has run out (PIPE, ALRM, VTALRM, PROF): each
/// does what is set by then, and ends the process as the signal would have. A signal that is
/// ignored stays so. What libraries have installed before main() goes: UCX takes SIGHUP, to wait
/// for a debugger. Whoever installs a handler later replaces these. Call it once, when the program
/// starts.
/// @param ignores_hangup  SIGHUP was ignored when the process began, before any library
void clean_up_on_signals(bool ignores_hangup) noexcept;

/// Holds those signals back from the calling thread while it does what has to be done whole, such
/// as giving several files their names; what has come in the meantime is delivered then. For
/// moments, in programs of one thread: another thread would take them.
class HeldSignals {
 public:
  HeldSignals() noexcept;
  ~HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace fourfold
