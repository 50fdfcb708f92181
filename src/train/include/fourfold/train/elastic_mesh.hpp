// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Which mesh a run takes on the machines that a scheduler has given it, which may be more or fewer
/// than last time. Global batch and data order stay; replicas and accumulation adapt.
#pragma once

#include <fourfold/train/resolved_run.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fourfold::train {

/// What a job has.
struct Allocation {
  int nodes = 1;
  std::int64_t tasks = 1;      ///< dealt out evenly
  std::size_t node_bytes = 0;  ///< memory of one that the job may use; 0: not known
  /// What makes that less than the node has: "DefMemPerCPU=200 of the cluster"; empty: nothing.
  std::string limited_by = {};
  /// What the node has, where that is known and limited_by is set.
  std::size_t most_node_bytes = 0;
  std::string memory_option = {};  ///< by which a job asks for more then: "--mem"
};

/// A run on the mesh that it takes there, of Allocation::tasks ranks or fewer.
struct ElasticRun : ResolvedRun {
  std::size_t rank_bytes = 0;  ///< node_bytes() of the rank that needs most
};

/// The mesh of a run. A number of mesh.dp leaves no choice: that mesh, on as many tasks. With
/// "auto" pp, cp and tp are those of the run file if there are tasks enough, with as many replicas
/// as divide the global batch and fit; else the largest divisors of tp and then of cp that there
/// are tasks for, since what they cut is cut for memory or speed inside a node, and the divisor of
/// pp that uses most tasks then. train.micro_batch becomes smaller where it does not divide a
/// replica's share. A pure function; reads the file of mesh.schedule.
/// @pre allocation.nodes >= 1, allocation.tasks >= 1
/// @throws UserError (config) with its place in the run file: what the run file's own mesh is
///   refused for, if nothing else works either; or when no mesh fits into the memory, with the
///   least that one needs
ElasticRun choose_mesh(const runfile::EffectiveConfig& effective, const Allocation& allocation);

/// The nodes of an allocation on which the mesh that choose_mesh() takes has no rank.
int idle_nodes(const ElasticRun& chosen, const Allocation& allocation);

/// Which numbers of nodes from least to most leave some idle, in ascending order: they are paid for
/// all the same. Counts for which there is no mesh are left out, and those far beyond any
/// allocation (10000 above the least).
/// @param on_nodes  what a node has; its nodes and tasks do not count
/// @pre 1 <= least <= most, tasks_per_node >= 1
std::vector<int> counts_with_idle_nodes(const runfile::EffectiveConfig& effective, int least,
                                        int most, std::int64_t tasks_per_node, Allocation on_nodes);

/// What differs from what `fourfold train` would take on all tasks, as texts of --set; empty:
/// nothing.
std::vector<std::string> overrides_for(const ElasticRun& chosen, const runfile::RunConfig& config,
                                       std::int64_t tasks);

/// What Slurm has given to this job, from the environment of its batch script or of a step; nothing
/// outside of one. Memory is what the job asked for, or all that this node has.
std::optional<Allocation> job_allocation();

}  // namespace fourfold::train
