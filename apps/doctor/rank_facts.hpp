// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/dtype.hpp>
#include <fourfold/comm/communicator.hpp>

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace fourfold::doctor {

/// What one rank knows of itself and its machine. -1: not known, or no limit.
struct RankFacts {
  int rank = 0;
  std::string node;  ///< what its host is called (node_names())
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
  // Measured, while all the others are too: the best of several times.
  double products_gflops = 0;  ///< matrix products, as the model's linear layers
  double triad_gb_s = 0;       ///< a = b + s c over arrays beyond the caches, as STREAM counts it
  double cores_had = 0;        ///< processor time per second, during the products

  std::string str() const;  ///< "rank 3 on node1"
};

/// Of a job, in order.
using Ranks = std::vector<RankFacts>;

/// Reads what this process can find out alone. Not: rank, node, host, needs, shared memory, GPU,
/// speed.
RankFacts own_facts();

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
std::vector<Machine> machines_of(const Ranks& ranks);

/// What the batch system calls each rank's host: its own word where that tells hosts apart as they
/// are (under mpiexec inside a job it is one node's for all), else the host name without domain.
/// @param hosts   of each rank
/// @param slurm   SLURMD_NODENAME of each rank, or ""
std::vector<std::string> node_names(std::span<const std::string> hosts,
                                    std::span<const std::string> slurm);

/// Of each node the first rank, ascending: of that order are all lists by node.
std::vector<int> first_ranks(const Ranks& ranks);
/// Not the same number of ranks on every node.
bool are_uneven(const Ranks& ranks);
/// Those that have fewer cores than threads together with others: they wait for each other's time
/// slices, and what they exchange cannot be timed.
std::set<int> oversubscribed(const Ranks& ranks);

/// Two windows of `window_s` each, all ranks at once, whatever each gets done in them. Needs
/// kernels::Runtime. Collective.
void measure_speed(DType dtype, double window_s, comm::Communicator& world, RankFacts& own);
/// The better of each figure: what disturbs a rank once does not disturb it always.
void keep_better(double products_gflops, double triad_gb_s, double cores_had, RankFacts& own);
/// Ranks with a figure that stands out.
bool has_slow_ones(const Ranks& ranks);

}  // namespace fourfold::doctor
