// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/process_identity.hpp>
#include <fourfold/train/elastic_mesh.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstddef>

namespace fourfold::train {
namespace {

std::size_t memory_of_this_node() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page_bytes = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && page_bytes > 0 ? pages * page_bytes : 0;
}

/// Slurm's variables say MiB; 0 means all.
void take_memory(Allocation& allocation) {
  constexpr std::size_t mib = 1 << 20;
  const std::int64_t node_mib = environment_number("SLURM_MEM_PER_NODE", 0);
  const std::int64_t cpu_mib = environment_number("SLURM_MEM_PER_CPU", 0);
  const std::int64_t cpus = environment_number("SLURM_CPUS_ON_NODE", 0);
  const std::int64_t asked_mib = node_mib > 0 ? node_mib : cpu_mib * cpus;
  const std::size_t asked_bytes = asked_mib * mib;
  const std::size_t there = memory_of_this_node();
  allocation.node_bytes = there;
  if (asked_mib > 0 && asked_bytes < there) {
    allocation.node_bytes = asked_bytes;
    allocation.limited_by =
        node_mib > 0 ? format_message(
                           "SLURM_MEM_PER_NODE={} (--mem of the job, or the default of its "
                           "partition, DefMemPerNode)",
                           node_mib)
                     : format_message(
                           "SLURM_MEM_PER_CPU={} (--mem-per-cpu of the job, or the default of its "
                           "partition, DefMemPerCPU) for {} CPUs",
                           cpu_mib, cpus);
    allocation.most_node_bytes = there;
    allocation.memory_option = "sbatch --mem";
  }
}

}  // namespace

std::optional<Allocation> job_allocation() {
  const std::int64_t nodes = environment_number("SLURM_JOB_NUM_NODES", 0);
  const std::int64_t on_each = environment_number("FOURFOLD_TASKS_PER_NODE", 0);
  const std::int64_t tasks =
      on_each > 0 ? on_each * nodes : environment_number("SLURM_NTASKS", nodes);  // one on each
  if (nodes < 1 || tasks < 1) {
    return std::nullopt;
  }
  Allocation allocation{.nodes = static_cast<int>(nodes), .tasks = tasks};
  take_memory(allocation);
  return allocation;
}

}  // namespace fourfold::train
