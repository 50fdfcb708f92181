// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/comm/mpi_runtime.hpp>
#include <fourfold/comm/run_program.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <new>
#include <thread>
#include <utility>

namespace fourfold::comm {
namespace {

RankIdentity& identity() {
  static RankIdentity instance;
  return instance;
}

/// Long enough for rank 0's abort to reach a rank that failed for the same reason, and for a lower
/// rank's to reach a higher one; short enough for a rank that failed alone.
std::chrono::milliseconds moment(int rank) {
  return std::chrono::milliseconds(rank == 0 ? 0 : 400 + 200 * std::min(rank, 18));
}

/// Prints the message unless another rank does, and ends all ranks.
int fail(std::string_view program, ExitCode code, const std::string& message) noexcept {
  const RankIdentity& self = identity();
  const bool several = self.abort_all != nullptr;
  if (several) {
    std::this_thread::sleep_for(moment(self.rank));
  }
  std::fflush(stdout);
  std::string line(program);
  line += several ? fmt::format(": [rank {} of {} on {}] ", self.rank, self.size, self.host) : ": ";
  line += "error: " + message + "\n";
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
  if (several) {
    self.abort_all(code);
  }
  return static_cast<int>(code);
}

std::string with_place(const Error& error) {
  // Users need no source lines for their own mistakes; for ours and the system's they help.
  if (dynamic_cast<const UserError*>(&error) != nullptr) {
    return error.what();
  }
  return fmt::format("{} [{}:{}]", error.what(), error.where().file_name(), error.where().line());
}

}  // namespace

void set_rank_identity(RankIdentity self) {
  identity() = std::move(self);
}

int run_program(std::string_view program, const std::function<ExitCode()>& body) noexcept {
  try {
    return static_cast<int>(body());
  } catch (const LaunchError& error) {
    // Every process says the same, and none can end the others.
    return identity().rank == 0 ? fail(program, error.code(), error.what())
                                : static_cast<int>(error.code());
  } catch (const Error& error) {
    return fail(program, error.code(), with_place(error));
  } catch (const std::bad_alloc&) {
    return fail(program, ExitCode::config,
                "out of memory (the system refused an allocation) use a smaller micro_batch or "
                "more ranks");
  } catch (const std::exception& error) {
    return fail(program, ExitCode::internal,
                fmt::format("unexpected: {} (a bug of fourfold, or of a library)", error.what()));
  } catch (...) {
    return fail(program, ExitCode::internal, "unexpected: an unknown exception");
  }
}

}  // namespace fourfold::comm
