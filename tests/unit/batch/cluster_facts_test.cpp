// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/batch/cluster_facts.hpp>

#include <catch2/catch_test_macros.hpp>

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
  CHECK_FALSE(partition_of("gpu|2|48|1000000\n", ""));
  for (const char* rubbish : {"", "\n", "|||\n", "a|b|c\n", "a*|x|y|z|\n", "slurm_load: error\n"}) {
    CHECK_FALSE(partition_of(rubbish, "").value_or(Partition{}).nodes > 0);
  }
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
}
