// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "local_tier/node_folders.hpp"
#include "save/checkpoint_shard_writer.hpp"
#include "save/step_commit.hpp"
#include "step/checkpoint_read.hpp"
#include "step/step_folder.hpp"

#include <fourfold/comm/communicator.hpp>
#include <fourfold/io/checkpoint_store.hpp>
#include <fourfold/io/local_tier.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace fourfold::io {

/// Collective in all that takes the world.
struct LocalTier::Impl {
  Impl(LocalTierOptions with, const CheckpointStore& of_run, comm::Communicator& world);

  /// The run's folder on this node.
  std::filesystem::path home() const { return options.directory / word; }

  void tell_of_lost(comm::Communicator& world, std::int64_t from) const;
  void remove_home() const;
  enum class Removed : std::uint8_t { nothing, steps, steps_and_word };
  Removed what_to_remove() const;
  Removed leave(comm::Communicator& world) const;
  void require_lease(comm::Communicator& world) const;
  void write(CheckpointShardWriter& share, comm::Communicator& world);
  SealedStep shared_seal(const CheckpointShardWriter& share, comm::Communicator& world) const;

  // Looking through the node-local steps of all nodes, and putting one together in the store.

  /// As LocalTier::promote_newest().
  std::optional<std::int64_t> promote_newest(comm::Communicator& world,
                                             std::optional<std::int64_t> newest) const;
  /// As LocalTier::find_newest().
  std::optional<Checkpoint> find_newest(comm::Communicator& world, std::int64_t after) const;
  /// Steps on any node that are newer, newest first, whole or not. Names what is passed over.
  std::vector<std::int64_t> newer_than(comm::Communicator& world, std::int64_t newest) const;
  /// @return whether the step is in the store now; when not, why has been said
  bool promote(comm::Communicator& world, std::int64_t step) const;
  /// Manifest and index that all nodes agree on which have any that hold together.
  std::optional<Inspection> head_of(comm::Communicator& world, std::int64_t step) const;

  LocalTierOptions options;
  const CheckpointStore& store;
  PlanOptions plan;  ///< of each save
  int ranks;
  NodeMap nodes;
  int node;
  bool is_first;  ///< of its node: makes, renames and removes folders
  bool copies;    ///< for a partner
  std::unique_ptr<comm::Communicator> own_node;
  std::unique_ptr<comm::Communicator> peers;  ///< ranks_like() this one
  std::string word;                           ///< empty: the run has no node-local steps yet
  std::optional<MadeFolders> made;            ///< options.directory; until the run begins

 private:
  std::vector<int> ranks_like(int rank) const;
};

// The node-local steps that lie in a run's folder on one node. Its first rank alone removes some.
// What cannot be removed is a warning: it takes room, but nobody will use it. Local.

/// @param home  the folder, in all of these
void remove_local_steps(const std::filesystem::path& home, std::span<const std::int64_t> steps);
/// Those after the `keep_last` newest up to `step`; later ones, of before the run went back, stay.
void remove_outdated_local_steps(const std::filesystem::path& home, std::int64_t step,
                                 int keep_last);
/// What saves that failed have left there.
void sweep_local_steps(const std::filesystem::path& home);
/// The folder with all that is in it.
void remove_all_local_steps(const std::filesystem::path& home);

}  // namespace fourfold::io
