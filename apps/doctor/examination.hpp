// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "arguments.hpp"
#include "check.hpp"
#include "clock_check.hpp"
#include "directory_check.hpp"
#include "gpu_check.hpp"
#include "placement_checks.hpp"
#include "run_needs.hpp"
#include "speed_check.hpp"
#include "transport_check.hpp"

#include <fourfold/comm/mpi_runtime.hpp>

#include <vector>

namespace fourfold::doctor {

/// All that was found, on rank 0; the others know what they had a part in.
struct Examination {
  Ranks ranks;
  RunNeeds needs;
  std::vector<RankSpeed> speeds;
  std::vector<LineSpeed> lines;
  std::vector<LinkSpeed> links;
  std::vector<std::vector<DirectoryFacts>> directories;  ///< as needs.directories, by node
  std::vector<ClockFacts> clocks;                        ///< by node
  std::vector<NodeGpus> gpus;                            ///< by node
  double seconds = 0;
  std::vector<Check> checks = {};  ///< rank 0; all of them where builds differ
};

/// Everything, within arguments.seconds. Needs kernels::Runtime. Collective.
/// Where the ranks are not of one build there is one check, which says so.
/// @throws UserError (config) for a run file that no run would take
Examination examine(const Arguments& arguments, const comm::MpiRuntime& mpi);

}  // namespace fourfold::doctor
