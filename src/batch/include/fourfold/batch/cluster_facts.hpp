// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What Slurm's commands say of a cluster, from their standard output: pure functions. A site may
/// print warnings and banners there, before an answer or after it: a line counts only if it has
/// the form of one.
#pragma once

#include <fourfold/base/build_facts.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::batch {

/// A partition; the smallest of its nodes counts.
struct Partition {
  std::string name;
  bool is_default = false;
  int nodes = 0;
  int cpus = 0;                 ///< of a node
  std::size_t node_bytes = 0;   ///< 0: Slurm does not know
  std::string time_limit = {};  ///< of its jobs, as sinfo says it; empty: none
  int most_nodes = 0;           ///< of a job; 0: no limit
  std::string state = {};       ///< "up", "down", "drain", "inact"; empty: Slurm does not say
  friend bool operator==(const Partition&, const Partition&) = default;
};

/// What `sinfo` has to print a line of for each partition and kind of node.
inline constexpr const char* partition_format = "%P|%D|%c|%m|%l|%s|%a";

/// @param text  of `sinfo --noheader --format=<partition_format>`
/// @param name  of the partition; empty: the default one
/// @return nothing when there is none of that name
std::optional<Partition> partition_of(std::string_view text, std::string_view name);

/// Whether that output names any partition: if not, it is no answer.
bool names_partitions(std::string_view text);

/// A job as `sbatch --parsable` names it: "4711", or "4711;alpha" where there are several clusters.
struct SubmittedJob {
  std::string number;
  std::string cluster = {};  ///< empty: this one
  friend bool operator==(const SubmittedJob&, const SubmittedJob&) = default;
};

/// @param text  of `sbatch --parsable`
/// @return nothing when no line, or more than one, is a job: which is the right one is not known
/// then
std::optional<SubmittedJob> submitted_job(std::string_view text);

/// Whether sbatch, which has failed, may have made a job all the same: the controller's answer did
/// not come, or not whole.
/// @param errors  of `sbatch`
bool may_be_submitted(std::string_view errors);

/// A job in the queue.
struct QueuedJob {
  std::string number;
  std::string script;  ///< what it was submitted as
  friend bool operator==(const QueuedJob&, const QueuedJob&) = default;
};

/// What `squeue` has to print of each job.
inline constexpr const char* queue_format = "%A %o";

/// @param text  of `squeue --noheader --format=<queue_format>`
std::vector<QueuedJob> queued_jobs_of(std::string_view text);

/// The command that expands "node[0-2],n7"; Slurm's own program asks nobody for that.
std::vector<std::string> hostnames_command(const std::string& nodes);
/// Names of nodes, in order.
/// @param text  of that command
std::vector<std::string> hostnames_of(std::string_view text);

/// Whether `srun --mpi=list` names it. Some Slurms print that list on standard error: give both.
bool offers_mpi(std::string_view offered, std::string_view name);
/// Whether it names any: if not, it is no answer.
bool offers_any_mpi(std::string_view offered);

/// The `srun --mpi=` by which ranks of this build meet.
/// @param libraries  what it was built with
/// @param offered    of `srun --mpi=list`
/// @return nothing when it is not known; empty when Slurm has none of those that would do
std::optional<std::string> mpi_of(std::span<const LibraryFact> libraries, std::string_view offered);

/// What a job may take of each node's memory.
struct MemoryGrant {
  std::size_t bytes = 0;  ///< 0: all that the node has
  std::string set_by =
      {};  ///< "--mem=1G", "DefMemPerCPU=200 of the cluster, 2 CPUs"; empty: nobody
  friend bool operator==(const MemoryGrant&, const MemoryGrant&) = default;
};

/// By --mem or --mem-per-cpu, else by the partition's DefMemPerNode or DefMemPerCPU, else by the
/// cluster's. What a GPU brings with it is not counted: the grant is larger then.
/// @param options    of sbatch, "--mem=1G": the last one counts
/// @param partition  of `scontrol --oneliner show partition NAME`; empty: not known
/// @param config     of `scontrol show config`; empty: not known
/// @param cpus       of the job on a node
/// @throws UserError (usage) for a --mem or --mem-per-cpu that is no amount
MemoryGrant memory_of_job(std::span<const std::string> options, std::string_view partition,
                          std::string_view config, int cpus);

}  // namespace fourfold::batch
