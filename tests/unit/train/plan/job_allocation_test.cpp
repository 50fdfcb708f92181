// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "environment.hpp"

#include <fourfold/base/process_identity.hpp>
#include <fourfold/train/elastic_mesh.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstddef>

using namespace fourfold::train;
using fourfold::harness::Environment;

namespace {

constexpr std::size_t mib = 1 << 20;

}  // namespace

TEST_CASE("what a job has is read from its environment", "[job_allocation]") {
  CHECK_FALSE([] {
    const Environment outside{};
    return job_allocation();
  }());
  const Environment job{{"SLURM_JOB_NUM_NODES", "3"}, {"SLURM_NTASKS", "12"}};
  const auto has = job_allocation();
  REQUIRE(has);
  CHECK(has->nodes == 3);
  CHECK(has->tasks == 12);
  CHECK(has->node_bytes > 64 * mib);  // all that this machine has
}

TEST_CASE("tasks that the script starts itself count, and a node has one without any word of them",
          "[job_allocation]") {
  {
    const Environment own{
        {"SLURM_JOB_NUM_NODES", "3"}, {"SLURM_NTASKS", "3"}, {"FOURFOLD_TASKS_PER_NODE", "4"}};
    CHECK(job_allocation()->tasks == 12);
  }
  const Environment none{{"SLURM_JOB_NUM_NODES", "5"}};
  CHECK(job_allocation()->tasks == 5);
}

TEST_CASE("memory is what the job asked for, a node or a CPU", "[job_allocation]") {
  {
    const Environment node{{"SLURM_JOB_NUM_NODES", "1"}, {"SLURM_MEM_PER_NODE", "96"}};
    CHECK(job_allocation()->node_bytes == 96 * mib);
  }
  const Environment cpus{
      {"SLURM_JOB_NUM_NODES", "1"}, {"SLURM_MEM_PER_CPU", "10"}, {"SLURM_CPUS_ON_NODE", "4"}};
  CHECK(job_allocation()->node_bytes == 40 * mib);
}

TEST_CASE("what is no number of things is none", "[job_allocation]") {
  for (const char* text : {"", "-1", "4x", "1e3", "99999999999999999999"}) {
    const Environment odd{{"SLURM_JOB_NUM_NODES", text}};
    CHECK(fourfold::environment_number("SLURM_JOB_NUM_NODES", 7) == 7);
    CHECK_FALSE(job_allocation());
  }
}
