// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "check.hpp"
#include "rank_facts.hpp"

#include <fourfold/comm/mesh.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace fourfold::doctor {

/// How fast one line of ranks exchanges, while all other lines of the axis do too.
struct LineSpeed {
  std::string axis;        ///< "tp", ...; "world"
  std::vector<int> ranks;  ///< of the world
  double latency_us = 0;   ///< of the smallest message
  double bus_gb_s = 0;     ///< of the largest that was measured
  std::int64_t bytes = 0;  ///< of that one
  std::int64_t wrong_elements = 0;
};

/// All lines of the mesh's axes that have several ranks, on all ranks: all_reduce, and messages
/// from stage to stage for pp. Larger and larger messages as time allows. Collective.
/// @param seconds  to take, about
std::vector<LineSpeed> measure_lines(comm::Mesh& mesh, bool is_world, double seconds);

/// The better figures of two measurements of the same lines.
std::vector<LineSpeed> better_of(std::vector<LineSpeed> a, const std::vector<LineSpeed>& b);

/// Indices of lines that are slow among those of their axis that are on as many nodes.
std::vector<std::size_t> slow_lines(const Ranks& ranks, const std::vector<LineSpeed>& lines);

/// A row for each axis.
std::vector<Check> transport_checks(const Ranks& ranks, const std::vector<LineSpeed>& lines);

/// To what is slow where ranks share cores.
inline constexpr const char* no_word_of_transport =
    " (ranks share cores here, so this says little of the transport); look again with a core each";

}  // namespace fourfold::doctor
