// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "scratch_folder.hpp"
#include "tier_cluster.hpp"

#include <fourfold/base/error.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace fourfold::io_test {

inline constexpr const char* local_step = "step-000000020";

/// The only word's folder on a node.
inline std::filesystem::path home(const TierCluster& cluster, int node) {
  std::vector<std::filesystem::path> folders;
  for (const auto& entry : std::filesystem::directory_iterator(cluster.node(node))) {
    folders.push_back(entry.path());
  }
  REQUIRE(folders.size() == 1);
  return folders.front();
}

inline std::vector<std::string> names(const std::filesystem::path& folder) {
  std::vector<std::string> result;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    result.push_back(entry.path().filename().string());
  }
  std::ranges::sort(result);
  return result;
}

/// A run with step 5 in the store, then step 20 on the node-local tier, that is killed.
inline void make_steps(const TierCluster& cluster,
                       const std::vector<std::int64_t>& local_steps = {20}) {
  cluster.job([&](io::LocalTier& fast, io::CheckpointStore& store, comm::Communicator& world) {
    fast.begin(world);
    cluster.save(store, 5, world);
    for (const std::int64_t step : local_steps) {
      const auto report = cluster.save_local_step(fast, step, world);
      if (!report || report->payload_bytes <= 0) {
        throw UserError(ExitCode::internal, "the node-local step was not saved");
      }
    }
  });
}

inline void flip(const std::filesystem::path& file, std::size_t byte) {
  std::string bytes = harness::read_bytes(file);
  bytes[byte] = static_cast<char>(bytes[byte] ^ 1);
  harness::write_bytes(file, bytes);
}

}  // namespace fourfold::io_test
