// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0

#include <fourfold/comm/thread_group.hpp>
#include <fourfold/harness/on_ranks.hpp>

#include <catch2/catch_test_macros.hpp>

namespace fourfold::harness {

void on_ranks(const RankBody& body, Ranks ranks) {
  std::vector<int> sizes{1, 2, 3, 4, 5, 8};
  if (ranks == Ranks::many) {
    sizes.push_back(13);
  }
  for (const int size : sizes) {
    std::vector<Findings> findings(static_cast<std::size_t>(size));
    comm::run_device_ranks(size, [&](comm::Communicator& world) {
      body(world, findings[static_cast<std::size_t>(world.rank())]);
    });
    for (int rank = 0; rank < size; ++rank) {
      for (const std::string& text : findings[static_cast<std::size_t>(rank)].all()) {
        FAIL_CHECK("[rank " << rank << " of " << size << " threads on a device] " << text);
      }
    }
    CHECK(size == std::ssize(findings));
  }
}

}  // namespace fourfold::harness
