// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace fourfold::program {

/// What another program made of a command. Its two streams are kept apart: warnings and banners on
/// standard error are never part of an answer.
struct CommandOutput {
  int code = 0;             ///< of its exit; -1: a signal ended it, or it never ran
  std::string text;         ///< its standard output
  std::string errors = {};  ///< its standard error
  /// Why it has no whole answer, whatever its code: it hung, said too much, or could not be run.
  /// Empty: it has run to its end.
  std::string cut = {};

  /// Whether it has run to its end, without an error.
  bool is_answer() const { return code == 0 && cut.empty(); }
  /// Why it is none, for a message: "ended with code 3: invalid account", "has not answered for 60
  /// s". The last line that says something, of standard error if there is one.
  std::string failure() const;
};

/// How long a program is waited for, and what is kept of each stream.
struct CommandLimits {
  std::chrono::milliseconds time = std::chrono::seconds(60);
  std::size_t bytes = std::size_t{16} << 20;
};

/// Runs a program of PATH, without a shell, with nothing to read, every signal as programs expect
/// it, and waits for it. One that passes a limit is ended (SIGTERM, then SIGKILL): what it had
/// begun by then may have been done.
/// @return nothing when there is no such program
std::optional<CommandOutput> output_of(const std::vector<std::string>& command,
                                       const CommandLimits& limits = {});

/// The same of a command of Slurm that lists something, without the variables by which users change
/// what it lists (SQUEUE_..., SINFO_..., SACCT_...): these are gone from the environment then.
std::optional<CommandOutput> ask_slurm(const std::vector<std::string>& command,
                                       std::chrono::milliseconds time);

}  // namespace fourfold::program
