// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "check.hpp"
#include "placement_checks.hpp"

#include <fourfold/comm/communicator.hpp>
#include <fourfold/comm/mesh.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace fourfold::doctor {

/// How fast one line of ranks exchanges, while all other lines of the axis do too.
struct LineSpeed {
  std::string axis;        ///< "tp", ...; "world"
  std::vector<int> ranks;  ///< of the world
  double latency_s = 0;    ///< of the smallest message
  double bus_gb_s = 0;     ///< of the largest that was measured
  std::int64_t bytes = 0;  ///< of that one
  std::int64_t wrong_elements = 0;
};

/// All lines of the mesh's axes that have several ranks, on all ranks: all_reduce, and messages
/// from stage to stage for pp. Larger and larger messages as time allows. Collective.
/// @param seconds  to take, about
std::vector<LineSpeed> measure_lines(comm::Mesh& mesh, bool is_world, double seconds);

/// What one node received from another.
struct LinkSpeed {
  int from = 0;  ///< positions in Ranks::first_ranks()
  int to = 0;
  double gb_s = 0;
};

/// Every node sends to some others, at growing distances, all at the same time: one rank each.
/// Collective over `leaders`, the first ranks of the nodes. @return on all of them
std::vector<LinkSpeed> measure_links(comm::Communicator& leaders, double seconds);

/// The better figures of two measurements of the same.
std::vector<LineSpeed> better_of(std::vector<LineSpeed> a, std::span<const LineSpeed> b);
std::vector<LinkSpeed> better_of(std::vector<LinkSpeed> a, std::span<const LinkSpeed> b);

/// Indices of lines that are slow among those of their axis that are on as many nodes.
std::vector<std::size_t> slow_lines(const Ranks& ranks, std::span<const LineSpeed> lines);

/// Of each node the best of its links, in and out: a node with a bad adapter has no good one.
std::vector<double> best_link_of_nodes(std::span<const LinkSpeed> links, std::size_t nodes);

/// A row for each axis.
std::vector<Check> transport_checks(const Ranks& ranks, std::span<const LineSpeed> lines);
Check network_check(const Ranks& ranks, std::span<const LinkSpeed> links);

}  // namespace fourfold::doctor
