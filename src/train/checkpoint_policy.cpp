// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "checkpoint_policy.hpp"

#include <fourfold/base/contract.hpp>

#include <string>
#include <vector>

namespace fourfold::train {
namespace {

std::vector<int> file_of_rank(const std::string& files, int ranks,
                              std::span<const std::string> rank_hosts) {
  if (files == "rank") {
    return {};
  }
  if (files != "node") {
    return io::shared_files(ranks, std::stoi(files));
  }
  FOURFOLD_EXPECT(rank_hosts.empty() || std::ssize(rank_hosts) == ranks);
  return rank_hosts.empty() ? io::shared_files(ranks, 1) : io::files_by_node(rank_hosts);
}

}  // namespace

io::StoreOptions store_options(const runfile::CheckpointConfig& config, int ranks,
                               std::span<const std::string> rank_hosts) {
  return {.keep_last = static_cast<int>(config.keep_last),
          .plan = {.file_of_rank = file_of_rank(config.files, ranks, rank_hosts)}};
}

}  // namespace fourfold::train
