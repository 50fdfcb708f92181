// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Saves that go on while the run computes: what a rank writes is copied, and a thread writes the
/// copy. What ranks have to do together is done when they meet at a step boundary.
///
///   BackgroundSaver saver(store, layouts, world);
///   saver.begin(request, world);            // blocks while the state is copied
///   ... steps, and between them:
///   if (auto report = saver.poll(world)) { ... }
///   saver.finish(world);                    // before the end
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/io/checkpoint_store.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace fourfold::io {

/// At most one save is under way. All ranks make and call it alike, one thread of each.
class BackgroundSaver {
 public:
  /// Takes memory for this rank's share of a save and touches it, so that the first save is not
  /// slower than others. @param store  borrowed  @param tensors  of every save to come
  BackgroundSaver(const CheckpointStore& store, std::span<const TensorLayout> tensors,
                  const comm::Communicator& communicator);
  /// A save that is being written is given up, and what it wrote removed, now or by the next job;
  /// one that is being published is waited for.
  ~BackgroundSaver();
  BackgroundSaver(const BackgroundSaver&) = delete;
  BackgroundSaver& operator=(const BackgroundSaver&) = delete;

  /// Bytes of the copy on a rank. Of a rank's share of the state, plan_save() says which.
  static std::size_t staging_bytes(std::span<const TensorLayout> tensors, const PlanOptions& plan,
                                   int rank, int ranks);

  /// Agrees on the save, compares replicas, copies this rank's share and begins to write it. When
  /// it returns the pieces may change; the layouts must stay. Collective.
  ///
  /// Pieces that are still on their way (SaveRequest::has_arrived) are waited for by the thread,
  /// which copies them then: they may change once wait_until_read() has returned. Replicas are
  /// compared before the step is published.
  /// @pre !is_busy()
  /// @throws as CheckpointStore::save, for what fails until then
  void begin(const SaveRequest& request, comm::Communicator& communicator);

  /// Whether a save is under way; the same on all ranks between two calls.
  bool is_busy() const noexcept;
  std::int64_t step() const noexcept;  ///< of it

  /// Blocks until the pieces of the save that is under way are not read any more.
  void wait_until_read() const;

  /// Goes on where all ranks are done with what they do alone: one all_reduce, or nothing when no
  /// save is under way. Collective.
  /// @return once for each save, on all ranks at the same call, when it is on stable storage;
  ///   seconds counts from begin()
  /// @throws as CheckpointStore::save; then no save is under way
  std::optional<SaveReport> poll(comm::Communicator& communicator);

  /// Waits for the save that is under way. Collective; as poll().
  std::optional<SaveReport> finish(comm::Communicator& communicator);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fourfold::io
