// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/error.hpp>

#include <functional>
#include <string>
#include <string_view>

namespace fourfold::comm {

/// Runs the body of a program and turns whatever it throws into one message on stderr and the exit
/// code of docs/exit-codes.md. For main(): `return run_program("fourfold train", [&] { ... });`
///
/// With several ranks (the body made an MpiRuntime) an error ends them all through MPI_Abort, so
/// that nobody waits for a rank that is gone. Rank 0 speaks at once; another rank waits a moment
/// that grows with its rank first: when all fail for the same reason rank 0's message is the only
/// one, and a rank that fails alone is still heard, with "[rank r of N on host]" in front. Without
/// MPI the message is printed and the code returned.
/// @return the code of body, or of the error
int run_program(std::string_view program, const std::function<ExitCode()>& body) noexcept;

/// Who this process is among the ranks, and how to end them all. MpiRuntime says so to
/// run_program(), which thereby needs no MPI.
struct RankIdentity {
  int rank = 0;
  int size = 1;
  std::string host;
  /// Ends every rank; nullptr when there is only this process.
  void (*abort_all)(ExitCode) noexcept = nullptr;
};

/// Replaces this process's identity. Default: the only process. Not thread-safe; for runtimes.
void set_rank_identity(RankIdentity identity);

}  // namespace fourfold::comm
