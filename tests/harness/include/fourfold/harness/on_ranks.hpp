// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/communicator.hpp>

#include <functional>
#include <source_location>
#include <string>
#include <vector>

namespace fourfold::harness {

/// What one rank found wrong. Catch2's own macros are for one thread and one process; the body of a
/// rank uses this instead, and on_ranks() hands the findings of all ranks to Catch2.
class Findings {
 public:
  void check(bool condition, const std::string& what,
             std::source_location where = std::source_location::current());
  const std::vector<std::string>& all() const noexcept { return found_; }

 private:
  std::vector<std::string> found_;
};

using RankBody = std::function<void(comm::Communicator& world, Findings& findings)>;

/// Runs `body` as every rank. Linked with threads_ranks: for 1, 2, 3, 4, 5 and 8 ranks (and 13 with
/// Ranks::many), one after the other. Linked with mpi_test_main: once, on the ranks that the
/// launcher started. A body that throws fails the test; it ends an MPI run, so that nobody hangs.
enum class Ranks { few, many };
void on_ranks(const RankBody& body, Ranks ranks = Ranks::few);

}  // namespace fourfold::harness
