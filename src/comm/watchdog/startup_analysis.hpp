// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rank_state.hpp"

#include <fourfold/comm/watchdog.hpp>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::comm {

/// A rank that waits in MPI_Init, as it tells others.
struct Arrival {
  std::string host = {};
  long pid = 0;
  std::vector<int> beside = {};  ///< ranks of its host, itself among them; empty: not known
  friend bool operator==(const Arrival&, const Arrival&) = default;
};

/// The node of each rank of a Slurm step whose tasks are distributed by block, node after node, or
/// cyclic, one to each node in turn while it takes more.
/// @param nodes           SLURM_STEP_NODELIST, expanded
/// @param tasks_per_node  SLURM_STEP_TASKS_PER_NODE: "2(x3),1"
/// @param distribution    SLURM_DISTRIBUTION: "block", "cyclic:block"; empty: Slurm's default,
///   block. With no more tasks than nodes Slurm says "cyclic" by itself
/// @return empty where the distribution is another one, or these do not speak of `ranks` ranks
std::vector<std::string> nodes_of_ranks(const std::vector<std::string>& nodes,
                                        std::string_view tasks_per_node,
                                        std::string_view distribution, int ranks);

/// All that is known of a start whose MPI_Init has not come back for `limit_s`: ranks that wait are
/// known, and in MPI_Init. Where a missing rank runs, a waiting rank of the same host tells, else
/// `nodes`; not where a waiting rank knows its neighbours to be others than `nodes` says.
/// @param nodes  by rank, as the batch system calls them; empty: not known
WorldState state_of_start(int ranks, double limit_s, const std::map<int, Arrival>& waiting,
                          const std::vector<std::string>& nodes);

/// Who has not come. A pure function. Nobody is named if all wait, nor of a single rank.
HangDiagnosis analyse_start(const WorldState& start, double limit_s);

}  // namespace fourfold::comm
