// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "check.hpp"
#include "placement_checks.hpp"

#include <fourfold/comm/communicator.hpp>

#include <span>
#include <string>
#include <vector>

namespace fourfold::doctor {

/// What a node found out about its clock and about names.
struct ClockFacts {
  double offset_s = 0;       ///< its time of day before the first node's
  std::string name_problem;  ///< of the names that it has to find others by; empty: none
};

/// Collective over `leaders`, the first ranks of the nodes.
/// @param hosts     of the leaders, as MPI names them
/// @param machines  of the leaders, comm::machine_identity()
std::vector<ClockFacts> measure_clocks(const std::vector<std::string>& hosts,
                                       const std::vector<std::string>& machines,
                                       comm::Communicator& leaders);

/// Clocks against their median: the first node's own may be the wrong one.
Check clock_check(const Ranks& ranks, std::span<const ClockFacts> facts);
Check names_check(const Ranks& ranks, std::span<const ClockFacts> facts);

}  // namespace fourfold::doctor
