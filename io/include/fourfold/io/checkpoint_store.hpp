// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Checkpoints: sharded HDF5 files that restart on any mesh. The format is
/// docs/checkpoint-format.md.
///
///   CheckpointStore store("runs/first/checkpoints", {.keep_last = 3});
///   store.save({.step = 500, .mesh = mesh.shape(), .scalars = .., .tensors = layouts, .pieces =
///   mine}, world);
///   ...
///   if (auto checkpoint = store.restore(wanted, world)) { step = checkpoint->step(); }
///
/// All collective calls block the host; ranks meet on the communicator that is passed, in host
/// memory. Call them at a step boundary.
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/io/checkpoint.hpp>
#include <fourfold/io/checkpoint_load.hpp>
#include <fourfold/io/checkpoint_plan.hpp>
#include <fourfold/io/save_request.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>

namespace fourfold::io {

class DirectoryLease;

struct StoreOptions {
  /// Steps that are kept of the one just committed and those before it, the newest; older ones are
  /// removed. Later ones, which another run or this one before it went back has saved, neither
  /// count nor are removed. 0 keeps all.
  int keep_last = 0;
  /// Of the older ones these are kept: multiples of keep_every_steps, and the keep_best ones of the
  /// lowest validation loss (retention.hpp). 0: none for that.
  std::int64_t keep_every_steps = 0;
  int keep_best = 0;
  PlanOptions plan = {};
  /// Between counts of the lease; after six of them without one it counts as left behind.
  std::chrono::milliseconds lease_beat{5000};
  /// ReadSharing::from_holders of restore().
  int share_reads_from = 0;
  DoneWith done_with = {};
};

/// The checkpoints of one run: a directory with one step-NNNNNNNNN folder per committed step.
/// A folder of that name is complete; steps are never overwritten.
class CheckpointStore {
 public:
  explicit CheckpointStore(std::filesystem::path directory, StoreOptions options = {});
  ~CheckpointStore();
  CheckpointStore(const CheckpointStore&) = delete;
  CheckpointStore& operator=(const CheckpointStore&) = delete;

  const std::filesystem::path& directory() const noexcept { return directory_; }
  const StoreOptions& options() const noexcept { return options_; }
  const DoneWith& done_with() const noexcept { return options_.done_with; }

  /// Writes and commits one step. Collective. Replicas are compared first and written once, split
  /// among their holders. When this returns, on all ranks, the step is on stable storage.
  /// @throws on all ranks alike, with earlier steps untouched and nothing left behind:
  ///   UserError (cannot_write) with path, reason, free space and what to do, when anything
  ///   cannot be written or the step exists already with other contents;
  ///   SystemError (data_corrupt) naming tensor and ranks when replicas differ;
  ///   SystemError (internal) when ranks disagree about the plan.
  /// A step that exists already with the same identity is left as it is, with the texts it has, and
  /// counts as saved. Steps later than the one saved stay and are named in a warning.
  SaveReport save(const SaveRequest& request, comm::Communicator& communicator);

  /// Tries whether a save could begin: makes the directory, writes, syncs and removes a small file
  /// in it, and another that every rank has to see within 10 s. Collective; rank 0 writes. @throws
  /// UserError on all ranks: cannot_write; config when the directory is itself a step, or another
  /// one on some nodes
  void check_writable(comm::Communicator& communicator) const;

  /// Keeps other jobs from saving here while this store lives (directory_lease.hpp). Rank 0 takes
  /// the lease for all, a provisional one: until confirm_lease() the end of this store leaves the
  /// directory as it was, as far as nothing was saved. Collective; may wait for `silence`.
  /// @throws on all ranks alike as DirectoryLease
  void take_lease(comm::Communicator& communicator);
  /// The run really starts: nothing refuses it any more. From here on no earlier holder changes
  /// anything there. Only the first call counts. Local.
  /// @throws as DirectoryLease::check(); UserError (stopped_saved) when one has saved a step since
  ///   take_lease(): then what was restored is not the newest, and another start goes on from it
  void confirm_lease();
  /// Whether this job may still publish, set aside and remove steps here. Without take_lease(), as
  /// tools save, and on other ranks than 0: always. Local. @throws as DirectoryLease::check()
  void check_lease() const;

  /// find_newest_valid() and load(), falling back to the next older step, on all ranks together and
  /// with a warning that names what is damaged, until one loads whole.
  /// @param layouts  of `wanted`, for ReadSharing; empty: each rank reads all it wants
  /// @param examine  called on each rank with every checkpoint that is about to be loaded; it may
  ///   refuse one by throwing, on all ranks alike
  /// @return nothing when there is no step at all (then `wanted` is untouched)
  /// @throws UserError: config, listing the differences by tensor, when the checkpoint is of
  ///   another model; data_corrupt when steps exist and none is intact, or none is listed and
  ///   require_no_lost_steps() refuses that
  std::optional<Checkpoint> restore(std::span<const WantedBox> wanted,
                                    comm::Communicator& communicator,
                                    const std::function<void(const Checkpoint&)>& examine = {},
                                    std::span<const TensorLayout> layouts = {});

  /// Whether restore() has found the step damaged, the same on all ranks: a save of it sets it
  /// aside, even if other ranks than the one that could not read it find it whole.
  bool was_damaged(std::int64_t step) const { return damaged_steps_.contains(step); }

  /// Removes what dead jobs left: temporary folders of unfinished saves and folders half deleted.
  /// Collective; call once at the start of a job that will save here, which has the lease.
  void sweep_leftovers(comm::Communicator& communicator) const;

 private:
  std::filesystem::path directory_;
  StoreOptions options_;
  std::unique_ptr<DirectoryLease> lease_;  ///< on rank 0, once it is taken
  bool is_confirmed_ = false;
  std::set<std::int64_t> steps_at_first_;  ///< when the lease was taken
  std::set<std::int64_t> damaged_steps_;
};

}  // namespace fourfold::io
