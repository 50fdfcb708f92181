// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <source_location>
#include <stdexcept>
#include <string>

namespace fourfold {

/// Process exit codes. They are a contract with batch scripts; docs/exit-codes.md explains each one
/// to users.
enum class ExitCode : int {
  finished = 0,
  differs = 1,  ///< a comparison found a difference; not of training, whose codes avoid 1
  usage = 64,   ///< unknown option or verb
  data_corrupt =
      65,         ///< token file or checkpoint damaged, or a non-finite loss under the abort policy
  internal = 70,  ///< a bug of ours: a broken contract
  cannot_write = 73,   ///< checkpoint or log cannot be written (full, read-only, quota)
  stopped_saved = 75,  ///< stopped on time or signal with a checkpoint saved: run again to go on
  config = 78,         ///< run file, mesh or launch wrong
  node_fault = 85,     ///< node, GPU or transport failed; last checkpoint good
  hang = 86,           ///< the watchdog found a hang
  no_progress = 93,    ///< do not restart
};
/// Its number, which fmt prints.
constexpr int format_as(ExitCode code) noexcept {
  return static_cast<int>(code);
}

/// Base of everything fourfold throws on purpose: a message, the place it was thrown at and the
/// exit code that the process ends with if nobody recovers; apps/ sees to that.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message,
        std::source_location where = std::source_location::current())
      : std::runtime_error(message), code_(code), where_(where) {}

  ExitCode code() const noexcept { return code_; }
  const std::source_location& where() const noexcept { return where_; }

 private:
  ExitCode code_;
  std::source_location where_;
};

// The constructors below are spelled out because nvcc 13 fails on inherited ones whose default
// argument is a source_location.

/// The user, a file or the cluster is at fault. Word the message "what is wrong (why) what to do".
class UserError : public Error {
 public:
  UserError(ExitCode code, const std::string& message,
            std::source_location where = std::source_location::current())
      : Error(code, message, where) {}
};

/// A library or system call failed (MPI, HDF5, CUDA, write(2), ...); the message names the call and
/// its reason.
class SystemError : public Error {
 public:
  SystemError(ExitCode code, const std::string& message,
              std::source_location where = std::source_location::current())
      : Error(code, message, where) {}
};

// What a user of this program can do where something is short. Code that several programs share
// knows what is wrong; which keys and options there are to mend it only the program knows, so that
// its main says it here.

/// Each is a piece of a sentence: "use a smaller --micro-batch".
struct Remedies {
  std::string host_memory = "free some there, or run it where there is more";
  std::string device_memory = "free some there, or run it on a GPU that has more";
};

/// Call it before other threads are there. What is not called keeps what any program can do.
void set_remedies(Remedies remedies);
const Remedies& remedies() noexcept;

/// The message for memory of this host that was refused.
std::string out_of_memory_message();
/// Of a thread that cannot be started: too many processes, or no memory for its stack.
/// @param why  what the system says
std::string no_thread_message(const std::string& why);

}  // namespace fourfold
