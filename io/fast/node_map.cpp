// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "fast/node_map.hpp"

#include <fourfold/base/contract.hpp>

#include <algorithm>
#include <utility>

namespace fourfold::io {

NodeMap::NodeMap(std::vector<int> node_of_rank) : node_of_rank_(std::move(node_of_rank)) {
  FOURFOLD_EXPECT(!node_of_rank_.empty());
  ranks_.resize(static_cast<std::size_t>(*std::ranges::max_element(node_of_rank_)) + 1);
  for (std::size_t rank = 0; rank < node_of_rank_.size(); ++rank) {
    std::vector<int>& on_node = ranks_[node_of_rank_[rank]];
    place_.push_back(static_cast<int>(on_node.size()));
    on_node.push_back(static_cast<int>(rank));
  }
  for (const std::vector<int>& on_node : ranks_) {
    FOURFOLD_EXPECT(!on_node.empty());
  }
}

}  // namespace fourfold::io
