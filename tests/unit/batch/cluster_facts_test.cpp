// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/batch/cluster_facts.hpp>

#include <catch2/catch_test_macros.hpp>

#include <string>
#include <vector>

using namespace fourfold;
using namespace fourfold::batch;

TEST_CASE("partitions are read from sinfo", "[cluster_facts]") {
  constexpr std::size_t mib = 1 << 20;
  const char* const text =
      "batch*|12|64|256000\nbatch*|4|128+|512000+\ngpu|2|48|1000000\nold|1|8|1\n";
  CHECK(partition_of(text, "") == Partition{"batch", true, 16, 64, 256000 * mib});
  CHECK(partition_of(text, "batch") == partition_of(text, ""));
  CHECK(partition_of(text, "gpu") == Partition{"gpu", false, 2, 48, 1000000 * mib});
  CHECK(partition_of(text, "old") == Partition{"old", false, 1, 8, 0});
  CHECK_FALSE(partition_of(text, "other"));
  // With the limits of its jobs, as sinfo's %l and %s say them.
  const Partition limited{"gpu", false, 2, 48, 1000000 * mib, "1-00:00:00", 2};
  CHECK(partition_of("gpu|2|48|1000000|1-00:00:00|1-2\n", "gpu") == limited);
  CHECK(partition_of("gpu|2|48|1000000|1-00:00:00|2\n", "gpu") == limited);
  CHECK(partition_of("gpu|2|48|1000000|infinite|1-infinite\n", "gpu") == partition_of(text, "gpu"));
  CHECK(partition_of("gpu|2|48|1000000|n/a|n/a\n", "gpu") == partition_of(text, "gpu"));
  // And its state, %a.
  CHECK(partition_of("gpu|2|48|1000000|n/a|n/a|up\n", "gpu")->state == "up");
  CHECK(partition_of("gpu|2|48|1000000|1:00:00|2|inact\n", "gpu")->state == "inact");
  CHECK_FALSE(partition_of("gpu|2|48|1000000\n", ""));
  for (const char* rubbish : {"", "\n", "|||\n", "a|b|c\n", "a*|x|y|z|\n", "slurm_load: error\n"}) {
    CHECK_FALSE(partition_of(rubbish, "").value_or(Partition{}).nodes > 0);
    CHECK_FALSE(names_partitions(rubbish));
  }
  // A site's banner, and a line of another command.
  const std::string banner =
      "--> Verifying | quota |...OK\n| a* | b | c |\nuse | of | this | system\n";
  CHECK(partition_of(banner + text + "bye*|now|or|never\n", "") == partition_of(text, ""));
  CHECK(partition_of("gpu|2|48|1000000\r\n", "gpu") == partition_of(text, "gpu"));
  CHECK_FALSE(names_partitions(banner));
  CHECK(names_partitions(banner + text));
}

TEST_CASE("a submitted job is the line that is a number, wherever it stands", "[cluster_facts]") {
  CHECK(submitted_job("4711\n") == SubmittedJob{"4711"});
  CHECK(submitted_job("4711") == SubmittedJob{"4711"});
  CHECK(submitted_job("4711;alpha\n") == SubmittedJob{"4711", "alpha"});
  CHECK(
      submitted_job(" -----\n   Welcome to cluster 7\n-----\n--> Verifying...OK\n4711;a-b.c\r\n") ==
      SubmittedJob{"4711", "a-b.c"});
  CHECK(submitted_job("4711 \nsbatch: 3 jobs of yours wait\n") == SubmittedJob{"4711"});
  for (const char* const none :
       {"", "\n", "Submitted batch job 4711\n", "0\n", "-3\n", "4711;\n", "4711;alpha beta\n",
        "4711x\n", "4711\n4712\n", "4711\n4711;alpha\n", "sbatch: warning: 12\n"}) {
    CAPTURE(none);
    CHECK_FALSE(submitted_job(none));
  }
  CHECK_FALSE(submitted_job(std::string(std::size_t{1} << 20, '7')));
}

TEST_CASE("a job may be there though sbatch has failed", "[cluster_facts]") {
  for (const char* errors :
       {"sbatch: error: Batch job submission failed: Socket timed out on send/recv operation\n",
        "sbatch: error: Batch job submission failed: Zero Bytes were transmitted or received",
        "sbatch: error: x\nsbatch: error: Batch job submission failed: Message receive failure",
        "sbatch: error: Batch job submission failed: Unexpected message received",
        "sbatch: error: Batch job submission failed: Connection reset by peer",
        "sbatch: error: Batch job submission failed: Transport endpoint is not connected"}) {
    CAPTURE(errors);
    CHECK(may_be_submitted(errors));
  }
  for (const char* errors :
       {"",
        "sbatch: error: Batch job submission failed: Invalid account or account/partition "
        "combination specified",
        "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect "
        "failure)"}) {
    CHECK_FALSE(may_be_submitted(errors));
  }
}

TEST_CASE("queued jobs and names of nodes are lines of their form", "[cluster_facts]") {
  const char* const queue =
      "CLUSTER: alpha\n17 /runs/a b/chain.sbatch\n-----\nWelcome to it\n18 (null)\n19\n20 \n"
      "squeue: error: 21 nodes\n";
  CHECK(queued_jobs_of(queue) ==
        std::vector<QueuedJob>{{"17", "/runs/a b/chain.sbatch"}, {"18", "(null)"}});
  CHECK(queued_jobs_of("").empty());
  CHECK(hostnames_of("Last login: now\nnode0\nnode-1.site\n*****\n\n") ==
        std::vector<std::string>{"node0", "node-1.site"});
}

TEST_CASE("ranks meet by what their MPI library speaks", "[cluster_facts]") {
  const char* const debian =
      "MPI plugin types are...\n\tpmix\n\tnone\n\tcray_shasta\n\tpmi2\nspecific pmix plugin "
      "versions available: pmix_v4\n";
  const auto of = [](const char* version, const char* offered) {
    const std::vector<LibraryFact> libraries{{"Kokkos", "3.4"}, {"MPI", version}};
    return mpi_of(libraries, offered);
  };
  CHECK(of("MPICH 4.0.2", debian) == "pmi2");
  CHECK(of("Open MPI v4.1.4, package: Debian", debian) == "pmix");
  CHECK(of("Cray MPICH 8.1", debian) == "cray_shasta");
  CHECK(of("MPICH 4.0.2", "none\nopenmpi\n") == "");
  CHECK(of("MPICH 4.0.2", "srun: MPI types are...\nsrun: pmi2\nsrun: none\n") == "pmi2");
  CHECK_FALSE(of("Platform 9", debian));
  CHECK_FALSE(mpi_of({}, debian));
  for (const char* name : {"pmi2", "pmix", "none", "cray_shasta", "pmix_v4"}) {
    CHECK(offers_mpi(debian, name));
  }
  for (const char* other : {"pmi", "types", "plugin", "", "available:", "pmix_v"}) {
    CHECK_FALSE(offers_mpi(debian, other));
  }
  // What a message is about is not there.
  const char* const broken =
      "srun: error: plugin mpi/pmi2: cannot load: pmi2, pmix\nsrun: error: no such file: pmix\n"
      "-----\nWelcome\n";
  CHECK_FALSE(offers_any_mpi(broken));
  CHECK_FALSE(offers_mpi(broken, "pmix"));
  CHECK(offers_any_mpi(std::string(broken) + debian));
  CHECK(of("MPICH 4.0.2", (std::string(broken) + debian).c_str()) == "pmi2");
}
