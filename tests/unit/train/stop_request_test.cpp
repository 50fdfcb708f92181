// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "scratch_folder.hpp"

#include <fourfold/comm/thread_group.hpp>
#include <fourfold/train/stop_request.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>

#include <atomic>
#include <csignal>
#include <cstdlib>

namespace train = fourfold::train;
using train::StopReason;

TEST_CASE("a signal sets a flag, and the old handler comes back", "[stop_request]") {
  {
    const train::StopSignals signals;
    CHECK(train::StopSignals::received() == 0);
    REQUIRE(std::raise(SIGUSR2) == 0);
    CHECK(train::StopSignals::received() == SIGUSR2);
    const train::StopRequest request("/nonexistent", std::nullopt);
    fourfold::comm::run_ranks(1, [&](fourfold::comm::Communicator& world) {
      CHECK(request.poll(world, 0) == StopReason::signal);
    });
  }
  const train::StopSignals fresh;
  CHECK(train::StopSignals::received() == 0);
}

TEST_CASE("all ranks stop when the deadline of one comes too near", "[stop_request]") {
  std::atomic<int> stopped = 0;
  fourfold::comm::run_ranks(3, [&](fourfold::comm::Communicator& world) {
    const train::StopRequest request("/nonexistent", 4e9);
    const double needed_s = world.rank() == 2 ? 4e9 : 1;  // one rank has a slow disk
    stopped += request.poll(world, 1) == StopReason::none ? 0 : 100;
    stopped += request.poll(world, needed_s) == StopReason::deadline ? 1 : 0;
  });
  CHECK(stopped == 3);
}

TEST_CASE("a STOP file stops all ranks", "[stop_request]") {
  const fourfold::harness::ScratchFolder folder;
  std::atomic<int> stopped = 0;
  fourfold::comm::run_ranks(2, [&](fourfold::comm::Communicator& world) {
    const train::StopRequest request(folder.path(), std::nullopt);
    stopped += request.poll(world, 0) == StopReason::none ? 1 : 0;
    world.barrier();
    if (world.rank() == 0) {
      folder.write("STOP", "");
    }
    stopped += request.poll(world, 0) == StopReason::stop_file ? 1 : 0;
  });
  CHECK(stopped == 4);
}

TEST_CASE("time is kept for what comes after one more step", "[stop_request]") {
  using Catch::Matchers::WithinRel;
  const train::TimesSoFar measured{
      .step_s = 2, .evaluation_s = 400, .save_s = 60, .evaluation_steps = 9, .save_bytes = 1e12};
  CHECK_THAT(train::time_needed_s(measured), WithinRel(2 + 90 + 30.0, 1e-12));
  train::TimesSoFar evaluating = measured;
  evaluating.evaluation_due = true;
  CHECK_THAT(train::time_needed_s(evaluating), WithinRel(2 + 500 + 90 + 30.0, 1e-12));
  // Before the first evaluation and the first save: 9 steps' samples, 1 TB at 50 MB/s.
  evaluating.evaluation_s = 0;
  evaluating.save_s = 0;
  CHECK_THAT(train::time_needed_s(evaluating), WithinRel(2 + 1.25 * 18 + 30000 + 30.0, 1e-12));
}

TEST_CASE("the deadline comes from the environment", "[stop_request]") {
  ::unsetenv("SLURM_JOB_END_TIME");
  ::unsetenv("FOURFOLD_DEADLINE");
  CHECK_FALSE(train::deadline_from_environment().has_value());
  ::setenv("SLURM_JOB_END_TIME", "1900000000", 1);
  CHECK(train::deadline_from_environment() == 1900000000.0);
  ::setenv("FOURFOLD_DEADLINE", "1800000000", 1);
  CHECK(train::deadline_from_environment() == 1800000000.0);
  ::setenv("FOURFOLD_DEADLINE", "tomorrow", 1);
  CHECK_THROWS_AS(train::deadline_from_environment(), fourfold::UserError);
  ::unsetenv("FOURFOLD_DEADLINE");
  ::setenv("SLURM_JOB_END_TIME", "Unknown", 1);
  CHECK_FALSE(train::deadline_from_environment().has_value());
  ::unsetenv("SLURM_JOB_END_TIME");
}
