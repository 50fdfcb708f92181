// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "check.hpp"
#include "node_facts.hpp"
#include "rank_facts.hpp"
#include "run_needs.hpp"
#include "transport.hpp"

#include <fourfold/comm/mpi_runtime.hpp>

#include <string>
#include <vector>

namespace fourfold::doctor {

/// All that was found, on rank 0; the others know what they had a part in.
struct Examination {
  Ranks ranks;
  RunNeeds needs;
  std::vector<LineSpeed> lines;
  std::vector<NodeFacts> nodes;  ///< in the order of first_ranks()
  double seconds = 0;
  std::vector<Check> checks = {};  ///< rank 0; all of them where builds differ

  /// By node. @param index  in needs.directories
  std::vector<DirectoryFacts> facts_of_directory(std::size_t index) const;
};

/// Everything, within arguments.seconds. Needs kernels::Runtime. Collective.
/// Where the ranks are not of one build there is one check, which says so.
/// @throws UserError (config) for a run file that no run would take
Examination examine(const Arguments& arguments, const comm::MpiRuntime& mpi);

/// The table, what was found, and the line for sbatch.
std::string report(const Examination& examination);

/// All of it for programs (docs/doctor.md has the keys).
std::string to_json(const Examination& examination);

}  // namespace fourfold::doctor
