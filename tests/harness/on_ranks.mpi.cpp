// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "mpi_world.hpp"

#include <fourfold/comm/mpi_runtime.hpp>
#include <fourfold/harness/on_ranks.hpp>

#include <catch2/catch_test_macros.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <exception>

namespace fourfold::harness {

comm::Communicator*& mpi_world() {
  static comm::Communicator* world = nullptr;
  return world;
}

void on_ranks(const RankBody& body, Ranks /*ranks*/) {
  comm::Communicator& world = *mpi_world();
  Findings findings;
  try {
    body(world, findings);
  } catch (const std::exception& error) {
    // The others may wait for this rank.
    fmt::print(stderr, "[rank {} of {}] the test's body threw: {}\n", world.rank(), world.size(),
               error.what());
    std::fflush(stderr);
    comm::MpiRuntime::abort(ExitCode::internal);
  }
  const auto texts =
      comm::all_gather_text(world, fmt::format("{}", fmt::join(findings.all(), "\n")));
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    INFO("[rank " << rank << " of " << texts.size() << " processes] " << texts[rank]);
    CHECK(texts[rank].empty());
  }
}

}  // namespace fourfold::harness
