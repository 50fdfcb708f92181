// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What can be judged without measuring. Pure functions of the facts of all ranks.
#pragma once

#include "check.hpp"
#include "rank_facts.hpp"

#include <fourfold/comm/mesh.hpp>

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace fourfold::doctor {

/// The ranks of a job, in order; `nodes` is what each one's host is called (node_names()).
struct Ranks {
  std::vector<RankFacts> facts;
  std::vector<std::string> nodes;

  /// Those that have fewer cores than threads together with others: they wait for each other's
  /// time slices, and what they exchange cannot be timed.
  std::set<int> oversubscribed() const;
  /// Not the same number of ranks on every node.
  bool are_uneven() const;
  /// "rank 3 on node1"
  std::string rank_text(const RankFacts& of) const;
  /// Of each node the first rank, ascending.
  std::vector<int> first_ranks() const;
  /// Each node once, in the order of first_ranks(): of that order are all lists by node.
  std::vector<std::string> distinct_nodes() const;
};

/// The launcher's number of ranks against MPI's, and how many are on each node.
Check launch_check(const Ranks& ranks);
/// Whether neighbours on tp share a node. @param problem  why there is no mesh, if there is none
Check mesh_check(const Ranks& ranks, const std::optional<comm::MeshShape>& mesh,
                 const std::string& problem);
/// Cores against threads, by machine.
Check cores_check(const Ranks& ranks);
/// Memory of the machines against each other and against what the run needs.
Check memory_check(const Ranks& ranks);
/// Huge pages, limits of the shell, room for shared memory.
Check limits_check(const Ranks& ranks);
/// fourfold is the same build on all ranks, of which hosts and versions are known. Nothing else
/// that ranks tell can be trusted where it is not.
Check builds_check(const Ranks& ranks);
/// MPI and HDF5 are the same on all ranks.
Check versions_check(const Ranks& ranks);

}  // namespace fourfold::doctor
