// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/io/made_folders.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

namespace fourfold::io {

/// Which ranks are on which node. The nodes stand in a ring: each keeps copies for the one before.
class NodeMap {
 public:
  /// @param node_of_rank  counted from 0 without gaps, in any order of ranks; not empty
  explicit NodeMap(std::vector<int> node_of_rank);

  int nodes() const noexcept { return nodes_; }
  int node_of(int rank) const { return node_of_rank_[rank]; }
  /// Ascending; at least one.
  std::span<const int> ranks_on(int node) const { return ranks_[node]; }
  /// The rank's number among those on its node.
  std::int64_t place_of(int rank) const { return place_[rank]; }
  bool is_first(int rank) const { return place_of(rank) == 0; }
  int next(int node) const { return (node + 1) % nodes(); }
  int previous(int node) const { return (node + nodes() - 1) % nodes(); }

 private:
  std::vector<int> node_of_rank_;
  int nodes_;
  std::vector<std::int64_t> place_;
  std::vector<std::vector<int>> ranks_;
};

/// Makes the directory on each node and tries whether the ranks of a node see one folder there, and
/// those of other nodes another: each node puts down a file, then all look what lies there. Where
/// some nodes cannot use theirs, a disk has died: that is a warning. Collective.
/// @return on the first rank of a node the folder, to be kept when the run really begins
/// @throws on all ranks alike UserError: config when nodes share it or ranks of a node do not;
///   cannot_write when no node can use it
[[nodiscard]] std::optional<MadeFolders> require_own_folders(const std::filesystem::path& directory,
                                                             const NodeMap& nodes,
                                                             comm::Communicator& world);

}  // namespace fourfold::io
