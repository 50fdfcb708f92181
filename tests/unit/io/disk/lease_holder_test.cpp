// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "scratch_folder.hpp"

#include <fourfold/io/directory_lease.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdlib>

using fourfold::harness::ScratchFolder;
using fourfold::io::DirectoryLease;
using fourfold::io::LeaseHolder;

TEST_CASE("a start replaces those that the scheduler has given up for it, and no others",
          "[lease]") {
  const auto start = [](const char* job, long restarts, const char* chain) {
    return LeaseHolder{.host = "node1", .pid = 7, .job = job, .restarts = restarts, .chain = chain};
  };
  CHECK(start("41", 1, "").replaces(start("41", 0, "")));
  CHECK(start("41", 2, "41").replaces(start("41", 1, "41")));
  CHECK(start("103", 0, "41").replaces(start("41", 3, "41")));
  CHECK_FALSE(start("41", 1, "").replaces(start("41", 1, "")));
  CHECK_FALSE(start("41", 0, "").replaces(start("41", 1, "")));
  CHECK_FALSE(start("41", 3, "41").replaces(start("103", 0, "41")));  // the earlier one lives on
  CHECK_FALSE(start("103", 0, "").replaces(start("41", 0, "")));      // two users' jobs
  CHECK_FALSE(start("103", 0, "103").replaces(start("41", 0, "41")));
  CHECK_FALSE(start("", 1, "").replaces(start("", 0, "")));
  CHECK_FALSE(start("", 1, "a").replaces(start("", 0, "a")));
  CHECK_FALSE(start("x103", 0, "a").replaces(start("41", 0, "a")));
  const auto launch = [](long restarts, long number) {
    return LeaseHolder{
        .host = "node1", .pid = 7, .job = "41", .restarts = restarts, .launch = number};
  };
  CHECK(launch(0, 1).replaces(launch(0, 0)));  // again inside the job
  CHECK(launch(1, 0).replaces(launch(0, 3)));
  CHECK_FALSE(launch(0, 3).replaces(launch(1, 0)));
  CHECK_FALSE(launch(0, 1).replaces(launch(0, 1)));
  CHECK_FALSE(launch(0, 1).is_of_start(launch(0, 0)));
}

TEST_CASE("what a process says of itself can stand in a line", "[lease]") {
  ::setenv("SLURM_JOB_ID", "77", 1);
  ::setenv("SLURM_RESTART_COUNT", "3", 1);
  ::setenv("FOURFOLD_LAUNCH", "1", 1);
  ::setenv("FOURFOLD_CHAIN", "12", 1);
  const ScratchFolder scratch;
  const LeaseHolder me = LeaseHolder::this_process();
  {
    const DirectoryLease lease(scratch / "c", me);
    CHECK(fourfold::io::living_holder_of(scratch / "c", me, ".lease") == me);
    CHECK((me.job == "77" && me.restarts == 3 && me.launch == 1 && me.chain == "12"));
  }
  for (const char* name :
       {"SLURM_JOB_ID", "SLURM_RESTART_COUNT", "FOURFOLD_LAUNCH", "FOURFOLD_CHAIN"}) {
    ::unsetenv(name);
  }
  CHECK(LeaseHolder::this_process().job.empty());
}
