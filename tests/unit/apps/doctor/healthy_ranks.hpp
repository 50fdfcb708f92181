// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "rank_checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace fourfold::doctor {

/// `per_node` ranks on each of node0, node1, ...: machines of their own, a core for each rank.
inline Ranks healthy_ranks(int nodes, int per_node) {
  Ranks ranks;
  for (int rank = 0; rank < nodes * per_node; ++rank) {
    const std::string node = fmt::format("node{}", rank / per_node);
    RankFacts facts;
    facts.rank = rank;
    facts.node = node;
    facts.host = node + ".cluster";
    facts.machine = node;
    facts.launched_ranks = nodes * per_node;
    facts.cores = std::to_string(rank % per_node);
    facts.memory_bytes = 64'000'000'000;
    facts.available_bytes = 60'000'000'000;
    facts.huge_pages = "always";
    facts.shm_free_bytes = 32'000'000'000;
    facts.version = "1.0";
    facts.mpi = "MPICH 4";
    facts.hdf5 = "1.10";
    ranks.push_back(facts);
  }
  return ranks;
}

/// Some finding has the text.
inline bool finds(const Check& check, const std::string& text) {
  return std::ranges::any_of(check.findings(), [&](const std::string& finding) {
    return finding.find(text) != std::string::npos;
  });
}

using Names = std::vector<std::string>;

}  // namespace fourfold::doctor
