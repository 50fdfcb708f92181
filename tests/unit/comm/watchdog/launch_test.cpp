// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "watchdog/launch.hpp"

#include "environment.hpp"
#include "runtime/finish.mpi.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/comm/communicator.hpp>

#include <catch2/catch_test_macros.hpp>

#include <map>
#include <string>

namespace fourfold::comm {
namespace {

Launch launch_in(const std::map<std::string, std::string>& variables) {
  const harness::Environment environment(variables);
  return launch_of_this_process();
}

constexpr const char* mpich = "MPICH Version:\t4.0.2\nMPICH Release date:\t2022";

TEST_CASE("what the launcher says, nearest first", "[launch]") {
  CHECK(launch_in({}).size == 1);
  const Launch slurm = launch_in({{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "3"}});
  CHECK(slurm.size == 4);
  CHECK(slurm.rank == 3);
  // mpiexec -n 1 inside a step of four
  CHECK(launch_in({{"SLURM_STEP_NUM_TASKS", "4"}, {"PMI_SIZE", "1"}, {"PMI_RANK", "0"}}).size == 1);
  // A batch script's own processes have no step.
  CHECK(launch_in({{"SLURM_NTASKS", "8"}}).size == 1);
  CHECK(launch_in({{"SLURM_STEP_NUM_TASKS", "many"}}).size == 1);
}

TEST_CASE("what no launcher can have said is not believed", "[launch]") {
  for (const char* const size : {"0", "-4", "", "4x", "99999999999"}) {
    const Launch found = launch_in({{"PMI_SIZE", size}, {"PMI_RANK", "1"}});
    CHECK(found.size == 1);
    CHECK(found.rank == 0);
    CHECK(launch_in({{"PMI_SIZE", size}, {"SLURM_STEP_NUM_TASKS", "4"}}).size == 4);
  }
  for (const char* const rank : {"-1", "4", "two"}) {
    CHECK(launch_in({{"PMI_SIZE", "4"}, {"PMI_RANK", rank}}).rank == 0);
  }
}

TEST_CASE("singletons are told what to type", "[launch]") {
  const Launch slurm{.rank = 0, .size = 4, .variable = "SLURM_STEP_NUM_TASKS"};
  CHECK_FALSE(singleton_problem(slurm, 4, mpich));
  CHECK_FALSE(singleton_problem({}, 1, mpich));
  CHECK_FALSE(singleton_problem({.rank = 0, .size = 1, .variable = "PMI_SIZE"}, 1, mpich));
  const auto problem = singleton_problem(slurm, 1, mpich);
  REQUIRE(problem);
  CHECK(problem->find("4 processes were started, but each is rank 0 of 1") != std::string::npos);
  CHECK(problem->find("srun --mpi=pmi2") != std::string::npos);
  const auto open = singleton_problem(slurm, 1, "Open MPI v4.1.4, package: Debian");
  REQUIRE(open);
  CHECK(open->find("srun --mpi=pmix") != std::string::npos);
  CHECK(open->find("Open MPI v4.1.4,") != std::string::npos);
  const auto foreign =
      singleton_problem({.rank = 0, .size = 2, .variable = "OMPI_COMM_WORLD_SIZE"}, 1, mpich);
  REQUIRE(foreign);
  CHECK(foreign->find("the mpiexec that belongs to that MPI") != std::string::npos);
}

TEST_CASE("the MPICH whose MPI_Finalize hangs over a network is known by its version", "[launch]") {
  const std::string device = "\nMPICH Device:\tch4:ucx\n";
  CHECK(finalize_may_hang("MPICH Version:\t4.0.2" + device));
  CHECK(finalize_may_hang("MPICH Version: 3.4" + device));
  CHECK_FALSE(finalize_may_hang("MPICH Version:\t4.1" + device));
  CHECK_FALSE(finalize_may_hang("MPICH Version:\t10.0.1" + device));
  CHECK_FALSE(finalize_may_hang("MPICH Version:\t4.0.2\nMPICH Device:\tch4:ofi\n"));
  CHECK_FALSE(finalize_may_hang("MPICH Version:\t4.0.2" + device + "--with-pmi=pmix"));
  CHECK_FALSE(finalize_may_hang("MPICH Version:" + device));
  CHECK_FALSE(finalize_may_hang("Open MPI v4.1.4"));
}

}  // namespace
}  // namespace fourfold::comm

TEST_CASE("a program of one process refuses to be one of several", "[launch]") {
  using fourfold::comm::require_single_process;
  using fourfold::harness::Environment;
  {
    const Environment alone{};
    require_single_process("fourfold verify");
  }
  {
    const Environment one{{"PMI_SIZE", "1"}};
    require_single_process("fourfold verify");
  }
  try {
    const Environment four{{"PMI_SIZE", "4"}};
    require_single_process("fourfold verify");
    FAIL("it is one of four");
  } catch (const fourfold::UserError& error) {
    CHECK(error.code() == fourfold::ExitCode::config);
    CHECK(std::string(error.what()).find("4 processes were started") == 0);
  }
}
