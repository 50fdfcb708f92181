// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/batch/launcher_words.hpp>

#include <catch2/catch_test_macros.hpp>

#include <string>
#include <vector>

using fourfold::batch::killed_for_memory;
using fourfold::batch::not_started;
using fourfold::batch::unmendable;
using Names = std::vector<std::string>;

// As Slurm 22.05 and MPICH 4.0 print them.
TEST_CASE("what no other start mends is told from what may pass", "[launcher_words]") {
  for (const char* const line :
       {"srun: error: Couldn't find the specified plugin name for mpi/nope looking at all files",
        "srun: error:  mpi/pmix_v4: init: (null) [0]: mpi_pmix.c:195: pmi/pmix: can not load PMIx "
        "library",
        "srun: error: Couldn't load specified plugin name for mpi/pmix: Plugin init() callback "
        "failed",
        "srun: error: Invalid MPI type 'pmix', --mpi=list for acceptable types",
        "srun: unrecognized option '--no-such-option'",
        "srun: error: unrecognized --cpu-bind argument \"zzz\"",
        "srun: error: Invalid numeric value \"x\" for --ntasks.",
        "srun: error: Invalid --distribution specification",
        "srun: error: Invalid generic resource (gres) specification",
        "srun: error: Unable to create step for job 1: More processors requested than permitted",
        "srun: error: Unable to allocate resources: Invalid account or account/partition "
        "combination "
        "specified",
        "slurmstepd-node1: error: execve(): /a/fourfold: No such file or directory",
        "slurmstepd: error: execve(): fourfold: Permission denied",
        "[proxy:0:0@vm] HYDU_create_process (utils/launch/launch.c:73): execvp error on file "
        "./nothing (No such file or directory)",
        "[mpiexec@vm] match_arg (utils/args/args.c:166): unrecognized argument nope"}) {
    CAPTURE(line);
    CHECK(unmendable(line) == line);
    CHECK(unmendable(std::string("Welcome\n") + line + "\nbye") == line);
    CHECK_FALSE(unmendable(std::string("[rank 0] error: ") + line));
  }
  for (const char* const line :
       {"", "srun: error: node0: task 0: Exited with exit code 1",
        "srun: error: Unable to create step for job 1: Job/step already completing or completed",
        "srun: error: Task launch for StepId=1.0 failed on node node2: Communication connection "
        "failure",
        "srun: error: Unable to confirm allocation for job 7: Socket timed out on send/recv "
        "operation",
        "srun: error: Node failure on node2", "slurmstepd: error: *** STEP 1.0 CANCELLED ***",
        "slurmstepd: error: couldn't chdir to `/x': No such file or directory: going to /tmp "
        "instead",
        "srun: warning: can't run 2 processes on 5 nodes, setting nnodes to 2"}) {
    CAPTURE(line);
    CHECK_FALSE(unmendable(line));
  }
}

// As slurmstepd 22.05 and 23.11 and srun print them.
TEST_CASE("a kill for memory is known by slurmstepd's words, with its node", "[launcher_words]") {
  const auto counted = killed_for_memory(
      "step 3 loss 2.1\n"
      "slurmstepd-node1: error: StepId=1.0 exceeded memory limit (216846336 > 134217728), being "
      "killed\n"
      "slurmstepd-node0: error: Exceeded job memory limit\n"
      "srun: Job step aborted: Waiting up to 7 seconds for job step to finish.\n"
      "srun: error: node0: task 0: Exited with exit code 137\n"
      "srun: error: node1: task 1: Killed\n");
  REQUIRE(counted);
  CHECK(counted->nodes == Names{"node1"});
  CHECK(counted->taken_bytes == 216846336);
  CHECK(counted->limit_bytes == 134217728);
  const auto by_kernel = killed_for_memory(
      "srun: error: n-07.a: tasks 4-7,9: Out Of Memory\n"
      "slurmstepd-n-02: error: Detected 1 oom-kill event(s) in StepId=1.0. Some of your processes "
      "may have been killed by the cgroup out-of-memory handler.\n"
      "slurmstepd: error: Detected 3 oom_kill events in StepId=9.1. Some of the step tasks have "
      "been OOM Killed.\n");
  REQUIRE(by_kernel);
  CHECK(by_kernel->nodes == Names{"n-02", "n-07.a"});
  CHECK_FALSE(by_kernel->taken_bytes);
  const auto job = killed_for_memory("slurmstepd-node0: error: Exceeded job memory limit");
  REQUIRE(job);
  CHECK(job->nodes == Names{"node0"});
  const auto huge = killed_for_memory(
      "slurmstepd: error: StepId=1.0 exceeded memory limit (99999999999999999999 > 5), being "
      "killed");
  REQUIRE(huge);
  CHECK(huge->nodes.empty());
  CHECK_FALSE(huge->taken_bytes);
  for (const char* const words :
       {"", "srun: error: node1: task 1: Killed", "[rank 0] Exceeded job memory limit",
        "node1: task 1: Out Of Memory", "srun: error: node1: task 1: Exited with exit code 137",
        "slurmstepd-node0: error: *** STEP 1.0 ON node0 CANCELLED AT 2026-11-28T12:01:50 ***"}) {
    CAPTURE(words);
    CHECK_FALSE(killed_for_memory(words));
  }
  CHECK_FALSE(killed_for_memory("slurmstepd: error: " + std::string(100000, 'x') +
                                " exceeded memory limit (2 > 1), being killed"));
}

TEST_CASE("nodes on which a program cannot be started are told from those that are ended with it",
          "[launcher_words]") {
  const auto found = not_started(
      "slurmstepd-node2: error: execve(): /opt/fourfold/bin/fourfold: No such file or directory\n"
      "srun: error: node2: tasks 4-5: Exited with exit code 2\n"
      "srun: error: node3: task 6: Exited with exit code 127\n"
      "srun: error: node1: task 2: Killed\n"
      "srun: error: node0: task 0: Exited with exit code 137\n");
  CHECK(found.nodes == Names{"node2", "node3"});
  CHECK(found.why == "execve(): /opt/fourfold/bin/fourfold: No such file or directory");
  CHECK(not_started("srun: error: node0: task 0: Exited with exit code 78").nodes.empty());
  const auto unreachable = not_started(
      "srun: error: Task launch for StepId=1.2 failed on node node2: Communication connection "
      "failure\nsrun: error: Application launch failed: Communication connection failure\n");
  CHECK(unreachable.nodes == Names{"node2"});
  CHECK(unreachable.why == "Communication connection failure");
  CHECK(not_started("srun: error: node0: task 0: Exited with exit code 22").nodes.empty());
}
