// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/text.hpp>
#include <fourfold/train/elastic_mesh.hpp>

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <system_error>

namespace fourfold::train {
namespace {

/// A variable of the environment; nullptr when it is not set, or empty.
const char* variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

std::size_t memory_of_this_node() {
  const long pages = ::sysconf(_SC_PHYS_PAGES);
  const long page_bytes = ::sysconf(_SC_PAGESIZE);
  return pages > 0 && page_bytes > 0 ? pages * page_bytes : 0;
}

/// Slurm's variables say MiB; 0 means all.
void take_memory(Allocation& allocation) {
  constexpr std::size_t mib = 1 << 20;
  const std::int64_t node_mib = number_in("SLURM_MEM_PER_NODE", 0);
  const std::int64_t cpu_mib = number_in("SLURM_MEM_PER_CPU", 0);
  const std::int64_t cpus = number_in("SLURM_CPUS_ON_NODE", 0);
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

std::int64_t number_in(const char* name, std::int64_t otherwise) {
  const char* const text = variable(name);
  if (text == nullptr) {
    return otherwise;
  }
  std::int64_t value = 0;
  const char* const end = text + std::strlen(text);
  const auto [stop, error] = std::from_chars(text, end, value);
  if (error != std::errc{} || stop != end || value < 0) {
    log::warning(format_message("{}={} is ignored (that is no number)", name, printable(text)));
    return otherwise;
  }
  return value;
}

std::optional<Allocation> job_allocation() {
  const std::int64_t nodes = number_in("SLURM_JOB_NUM_NODES", 0);
  const std::int64_t on_each = number_in("FOURFOLD_TASKS_PER_NODE", 0);
  const std::int64_t tasks =
      on_each > 0 ? on_each * nodes : number_in("SLURM_NTASKS", nodes);  // one on each
  if (nodes < 1 || tasks < 1) {
    return std::nullopt;
  }
  Allocation allocation{.nodes = static_cast<int>(nodes), .tasks = tasks};
  take_memory(allocation);
  return allocation;
}

}  // namespace fourfold::train
