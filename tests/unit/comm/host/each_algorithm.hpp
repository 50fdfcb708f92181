// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/algorithm.hpp>
#include <fourfold/harness/on_ranks.hpp>

namespace fourfold::comm {

inline constexpr Algorithm each_algorithm[] = {Algorithm::direct, Algorithm::shared,
                                               Algorithm::ring, Algorithm::tree};

/// Runs `body` on the ranks with each algorithm.
inline void on_ranks_by_each_algorithm(const harness::RankBody& body,
                                       harness::Ranks ranks = harness::Ranks::few) {
  for (const Algorithm algorithm : each_algorithm) {
    harness::on_ranks(
        [&](Communicator& world, harness::Findings& findings) {
          world.use(algorithm);
          body(world, findings);
          world.use(Algorithm::automatic);
        },
        ranks);
  }
}

}  // namespace fourfold::comm
