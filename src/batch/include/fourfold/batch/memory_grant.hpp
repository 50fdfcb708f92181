// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace fourfold::batch {

/// What a job may take of each node's memory.
struct MemoryGrant {
  std::size_t bytes = 0;  ///< 0: all that the node has
  std::string set_by =
      {};  ///< "--mem=1G", "DefMemPerCPU=200 of the cluster, 2 CPUs"; empty: nobody
  friend bool operator==(const MemoryGrant&, const MemoryGrant&) = default;
};

/// What decides that, as Slurm's commands print it; empty: not known.
struct MemoryQuestion {
  std::span<const std::string> options = {};  ///< of sbatch, "--mem=1G": the last one counts
  std::string_view partition = {};            ///< `scontrol --oneliner show partition NAME`
  std::string_view config = {};               ///< `scontrol show config`
  int cpus = 1;                               ///< of the job on a node
};

/// By --mem or --mem-per-cpu, else by the partition's DefMemPerNode or DefMemPerCPU, else by the
/// cluster's. What a GPU brings with it is not counted: the grant is larger then.
/// @throws UserError (usage) for a --mem or --mem-per-cpu that is no amount
MemoryGrant memory_of_job(const MemoryQuestion& question);

}  // namespace fourfold::batch
