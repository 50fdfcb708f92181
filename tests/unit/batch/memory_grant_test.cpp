// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/batch/cluster_facts.hpp>

#include <catch2/catch_test_macros.hpp>

#include <string>
#include <vector>

using fourfold::UserError;
using fourfold::batch::memory_of_job;
using fourfold::batch::MemoryGrant;
using Options = std::vector<std::string>;

namespace {

constexpr std::size_t mib = 1 << 20;

// As scontrol of Slurm 22.05 prints them, cut.
const std::string no_partition_default =
    "PartitionName=test MaxNodes=UNLIMITED DefMemPerNode=UNLIMITED MaxMemPerNode=UNLIMITED "
    "TRES=cpu=4";
const std::string partition_default =
    "PartitionName=test DefMemPerCPU=300 MaxMemPerCPU=900 TRES=cpu=4,mem=24104M";
const std::string cluster_default =
    "DefMemPerCPU            = 200\nGpuFreqDef              = high,memory=high\n";
const std::string no_cluster_default =
    "DefMemPerNode           = UNLIMITED\nMaxMemPerNode           = UNLIMITED\n";

}  // namespace

TEST_CASE("the memory of a job is what it asks for, its partition's, or its cluster's",
          "[memory_grant]") {
  CHECK(memory_of_job({}, no_partition_default, no_cluster_default, 1) == MemoryGrant{});
  CHECK(memory_of_job({}, no_partition_default, cluster_default, 1) ==
        MemoryGrant{200 * mib, "DefMemPerCPU=200 of the cluster"});
  CHECK(memory_of_job({}, partition_default, cluster_default, 3) ==
        MemoryGrant{900 * mib, "DefMemPerCPU=300 of the partition, 3 CPUs"});
  CHECK(memory_of_job({}, "DefMemPerNode=4000 X=1", {}, 3) ==
        MemoryGrant{4000 * mib, "DefMemPerNode=4000 of the partition"});
  const Options node{"--qos=high", "--mem=1G"};
  CHECK(memory_of_job(node, partition_default, {}, 3) == MemoryGrant{1024 * mib, "--mem=1G"});
  const Options cpu{"--mem=1G", "--mem-per-cpu=500"};
  CHECK(memory_of_job(cpu, partition_default, {}, 2) ==
        MemoryGrant{1000 * mib, "--mem-per-cpu=500, 2 CPUs"});
  const Options all{"--mem=0"};
  CHECK(memory_of_job(all, {}, cluster_default, 1) == MemoryGrant{});
}

TEST_CASE("amounts are read as sbatch reads them", "[memory_grant]") {
  for (const auto& [value, expected] : {std::pair<const char*, std::size_t>{"4096K", 4},
                                        {"4097KB", 5},
                                        {"7m", 7},
                                        {"2g", 2048},
                                        {"1T", 1 << 20}}) {
    const Options options{std::string("--mem=") + value};
    CHECK(memory_of_job(options, {}, {}, 1).bytes == expected * mib);
  }
  for (const char* value : {"", "much", "-1", "1X", "0x10", "1.5G", "99999999999999"}) {
    CAPTURE(value);
    const Options options{std::string("--mem-per-cpu=") + value};
    CHECK_THROWS_AS(memory_of_job(options, {}, {}, 1), UserError);
  }
  const Options others{"--mem-bind=local", "--memory=1"};
  CHECK(memory_of_job(others, {}, {}, 1) == MemoryGrant{});
  CHECK(memory_of_job({}, {}, "XDefMemPerCPU = 3\nDefMemPerCPU = 99999999999\n", 1) ==
        MemoryGrant{});
}
