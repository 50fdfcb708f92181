// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/process_identity.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdlib>

using fourfold::BatchJob;

namespace {

void set(const char* job, const char* restarts, const char* chain) {
  ::setenv("SLURM_JOB_ID", job, 1);
  ::setenv("SLURM_RESTART_COUNT", restarts, 1);
  ::setenv("FOURFOLD_CHAIN", chain, 1);
}

}  // namespace

TEST_CASE("a process knows the start of its batch job", "[batch_job]") {
  set("77", "3", "70");
  CHECK(BatchJob::of_this_process() == BatchJob{.id = "77", .restarts = 3, .chain = "70"});
  ::setenv("FOURFOLD_LAUNCH", "2", 1);
  CHECK(BatchJob::of_this_process() ==
        BatchJob{.id = "77", .restarts = 3, .launch = 2, .chain = "70"});
  ::setenv("FOURFOLD_LAUNCH", "", 1);
  CHECK(BatchJob::of_this_process().launch == 0);
  ::setenv("FOURFOLD_PREVIOUS", "76", 1);
  CHECK(BatchJob::of_this_process().previous == "76");
  ::setenv("FOURFOLD_PREVIOUS", "7 6", 1);
  set("77", "many", "");
  CHECK(BatchJob::of_this_process() == BatchJob{.id = "77"});
  set("77", "-1", "two words");  // as a user may have exported
  CHECK(BatchJob::of_this_process() == BatchJob{.id = "77"});
  set("7\n8", "1 2", "a\tb");
  CHECK(BatchJob::of_this_process() == BatchJob{});
  for (const char* name : {"SLURM_JOB_ID", "SLURM_RESTART_COUNT", "FOURFOLD_LAUNCH",
                           "FOURFOLD_CHAIN", "FOURFOLD_PREVIOUS"}) {
    ::unsetenv(name);
  }
  CHECK(BatchJob::of_this_process() == BatchJob{});
}

TEST_CASE("a launch is one of a start of a job, whatever its chain", "[batch_job]") {
  const BatchJob launch{.id = "77", .restarts = 1, .launch = 2, .chain = "70"};
  CHECK(launch.is_same_launch({.id = "77", .restarts = 1, .launch = 2}));
  CHECK_FALSE(launch.is_same_launch({.id = "77", .restarts = 1, .launch = 1}));
  CHECK_FALSE(launch.is_same_launch({.id = "77", .restarts = 2, .launch = 2}));
  CHECK_FALSE(launch.is_same_launch({.id = "78", .restarts = 1, .launch = 2}));
}
