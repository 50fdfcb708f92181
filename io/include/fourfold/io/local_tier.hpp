// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The node-local tier of checkpoints: steps that lie spread over the nodes of a run, on their own
/// disks or in their memory, between those of the checkpoint directory. At a restart the newest one
/// that is whole is copied into the checkpoint directory and is a step like any other from then on.
/// docs/checkpoint-format.md says what lies where.
///
///   LocalTier tier({.directory = "/dev/shm/me", .node_of_rank = nodes}, store, world);
///   tier.promote_newest(world);          // before store.restore()
///   tier.begin(world);                   // what is there of before is in the store now, or void
///   ... tier.save(request, world); ...
///   tier.end(world);                     // the last checkpoint is in the store
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/io/checkpoint_store.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace fourfold::io {

struct LocalTierOptions {
  std::filesystem::path directory;  ///< of this rank's node; another one on each node
  std::vector<int> node_of_rank;    ///< of all ranks, counted from 0 without gaps
  bool partner = true;              ///< each node also keeps the files of the one before it
  int keep_last = 1;                ///< whole node-local steps that are kept, at least 1
};

/// The steps of one run on the nodes of its ranks, a payload file per rank that writes. All ranks
/// make and call it alike, one thread of each. Of the store it takes the directory, the plan but
/// for its files, and the lease.
class LocalTier {
 public:
  /// Makes the folders, and tries whether the ranks of a node see the same one and those of others
  /// another. A node whose folder cannot be used has no node-local steps, which is a warning:
  /// others may have copies. Says what other runs have left there. Collective.
  /// @param store  borrowed
  /// @throws UserError: config when nodes share the directory, ranks of a node do not, it lies in a
  ///   checkpoint, or the store's word of node-local steps is there and cannot be read;
  ///   cannot_write when no node can use it
  LocalTier(LocalTierOptions options, const CheckpointStore& store, comm::Communicator& world);
  ~LocalTier();
  LocalTier(const LocalTier&) = delete;
  LocalTier& operator=(const LocalTier&) = delete;

  int nodes() const noexcept;
  /// Of the node that has most to keep: payloads of the steps that stay, and of the next one while
  /// it is written. @param tensors  of every save to come
  std::uint64_t most_node_bytes(std::span<const TensorLayout> tensors) const;

  /// Looks for steps that are newer than `newest` of the store, of which all nodes that
  /// know of one say the same, and whose payloads are all there, each on whatever node: the newest
  /// is copied into the store by the ranks of those nodes, each file checked whole on the way, and
  /// committed there, with LATEST; what retention lets go the next save removes. A copy that is
  /// damaged is replaced by another. A step that cannot be put together is named in a warning, and
  /// the one before it is tried; one that the store has intact stays there.
  /// Collective; the lease is asked before the commit.
  /// @param newest  -1: none; without it the newest one whose manifest and index hold, and whose
  ///   files have their sizes
  /// @return the step that is in the store now
  /// @throws UserError (cannot_write) when the store cannot be written: then nothing is lost, and
  ///   the next start tries again
  std::optional<std::int64_t> promote_newest(comm::Communicator& world,
                                             std::optional<std::int64_t> newest = {});

  /// The newest step after `after` whose manifest and index the nodes that know of it agree on,
  /// whether or not its payloads are there: to ask it what run it is of. Collective.
  std::optional<Checkpoint> find_newest(comm::Communicator& world, std::int64_t after) const;

  /// Removes all node-local steps of this run, those of its earlier starts too, and gives the level
  /// a new word: what a node that is away today still holds never comes back. Call it when the run
  /// has what it goes on from, or begins. Steps after that are named in a warning. Collective; the
  /// lease is asked before. @param from  the step that the run goes on from; 0: it begins
  /// @throws UserError (cannot_write)
  void begin(comm::Communicator& world, std::int64_t from = 0);

  /// Saves a step over the nodes. When it returns, the step is on all of them; older ones are
  /// removed only then. A step that cannot be written is a warning: the store is the safe level.
  /// Collective; the lease is asked before. @pre begin()
  /// @return nothing when it could not be saved
  /// @throws UserError (cannot_write) when the lease is lost
  /// @throws SystemError as CheckpointStore::save: diverged replicas, ranks that disagree
  std::optional<SaveReport> save(const SaveRequest& request, comm::Communicator& world);

  /// Removes the node-local steps and the word; what cannot be removed is a warning, and so is a
  /// lease that is lost: then what is another's by now, or may be wanted there, stays. Collective.
  void end(comm::Communicator& world);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// For a run without a node-local tier: when an earlier start of it had one, says so and forgets
/// it, so that steps which this run leaves behind it never come back. Collective.
/// @throws UserError (cannot_write)
void forget_local_tier(const CheckpointStore& store, comm::Communicator& world);

}  // namespace fourfold::io
