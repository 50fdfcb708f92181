// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace fourfold::doctor {

/// What one rank knows of itself and its machine without measuring. -1: not known, or no limit.
struct RankFacts {
  int rank = 0;
  std::string host;
  std::string slurm_node;  ///< SLURMD_NODENAME
  std::string machine;     ///< comm::machine_identity()
  int launched_ranks = 1;  ///< as its launcher says
  int job_tasks = 0;       ///< SLURM_NTASKS; 0: not in a job
  int threads = 1;
  std::string cores;  ///< it may run on: "0-3,8"
  std::int64_t memory_bytes = -1;
  std::int64_t available_bytes = -1;
  std::int64_t needed_bytes = 0;  ///< by the run
  std::string huge_pages;         ///< "always", "madvise", "never"
  std::int64_t open_files = -1;
  std::int64_t locked_bytes = -1;
  std::int64_t file_bytes = -1;
  std::int64_t address_bytes = -1;
  std::int64_t shm_free_bytes = -1;  ///< in /dev/shm
  bool has_shm = true;
  bool has_rdma = false;      ///< InfiniBand and its like
  bool shares_memory = true;  ///< with the ranks of its host, as collectives do
  std::string gpu;            ///< that it computes on: its place on the PCI bus; "": on cores
  std::string version;
  std::string mpi;
  std::string hdf5;
};

/// Reads what this process can find out alone. Not: rank, host, needs, shared memory, GPU.
/// @param environment  as getenv()
RankFacts own_facts(const std::function<const char*(const char* name)>& environment);

/// "0-3,8" as 0, 1, 2, 3, 8. What is no list has none.
std::vector<int> cores_in(const std::string& list);

/// Ranks that share a machine: hosts may be several where one machine plays them.
struct Machine {
  std::vector<std::string> nodes;  ///< each once
  std::vector<int> ranks;
  std::int64_t total_bytes = -1;      ///< of memory; -1: not known
  std::int64_t available_bytes = -1;  ///< the least that any of its ranks sees
  std::int64_t needed_bytes = 0;      ///< by all its ranks

  std::string str() const;  ///< "node3"
};
/// @param nodes  what each rank's host is called
std::vector<Machine> machines_of(const std::vector<RankFacts>& facts,
                                 const std::vector<std::string>& nodes);

}  // namespace fourfold::doctor
