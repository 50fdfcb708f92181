// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "node_folders.hpp"
#include "step/checkpoint_read.hpp"
#include "step/step_folder.hpp"

#include <fourfold/comm/communicator.hpp>
#include <fourfold/io/checkpoint_store.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <vector>

namespace fourfold::io {

/// Looks through the node-local steps of all nodes, and puts one together in the store. Collective
/// in all it does.
class Promotion {
 public:
  /// @param home  the run's folder on this rank's node
  /// @param nodes, store, world  borrowed
  Promotion(std::filesystem::path home, const NodeMap& nodes, const CheckpointStore& store,
            comm::Communicator& world);

  /// As LocalTier::promote_newest().
  std::optional<std::int64_t> promote_newest(std::optional<std::int64_t> newest);
  /// As LocalTier::find_newest().
  std::optional<Checkpoint> find_newest(std::int64_t after);
  /// Steps on any node that are newer, newest first, whole or not.
  std::vector<std::int64_t> newer_than(std::int64_t newest);

 private:
  /// -1 when there is none. Steps that are passed over here are named when the run restores.
  std::int64_t newest_in_store();
  /// @return whether the step is in the store now; when not, why has been said
  bool promote(std::int64_t step);
  /// Manifest and index that all nodes agree on which have any that hold together.
  std::optional<Inspection> head_of(std::int64_t step);
  void commit(std::optional<TemporaryStep>& folder, const Inspection& head);

  /// The node-local steps of this node. Names what is passed over, once.
  std::vector<std::int64_t> listed();

  std::filesystem::path home_;
  std::set<std::filesystem::path> told_;
  const NodeMap& nodes_;
  const CheckpointStore& store_;
  comm::Communicator& world_;
  bool is_first_;  ///< of its node
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
