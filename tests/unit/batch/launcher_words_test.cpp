// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/batch/launcher_words.hpp>

#include <catch2/catch_test_macros.hpp>

using fourfold::batch::unmendable;

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
