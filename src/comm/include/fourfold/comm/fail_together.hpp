// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Between two collective operations a rank may fail alone. It must not leave: the others would
/// wait for it for ever. So local work runs in collective_try() or run_on_root(), or in
/// capture_failure() and throw_if_any_failed() makes all ranks throw alike.
#pragma once

#include <fourfold/base/error.hpp>
#include <fourfold/comm/communicator.hpp>

#include <functional>
#include <optional>
#include <source_location>
#include <string>

namespace fourfold::comm {

/// What was thrown: a UserError's message says what to do; of another error the place matters.
struct Failure {
  ExitCode code = ExitCode::internal;
  bool is_users = false;
  std::string message;
  std::source_location where;
};

/// Runs `work`; what it throws becomes a Failure. Lack of memory is a user's: a smaller run helps.
std::optional<Failure> capture_failure(const std::function<void()>& work);

/// Collective. Returns when no rank failed. Otherwise every rank throws the failures of the lowest
/// ranks that have any, each with its rank: as a UserError or a SystemError and under the exit
/// code that the lowest one's has, of those that are no user's if there are any. Places in the
/// sources stand beside the failures that are not users'; where() of a rank that failed itself is
/// its own.
void throw_if_any_failed(Communicator& communicator, const std::optional<Failure>& mine);

/// Runs work that each rank does alone: all throw when one failed. Collective, and a barrier.
void collective_try(Communicator& communicator, const std::function<void()>& work);

/// Runs work on rank 0 alone, as where all see one file system: what it did the others may rely on
/// when this returns, and they throw when it threw. What it found out stays on rank 0 unless it is
/// broadcast. Collective, and a barrier.
void run_on_root(Communicator& communicator, const std::function<void()>& work);

}  // namespace fourfold::comm
