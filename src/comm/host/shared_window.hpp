// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Memory that the ranks of a communicator share, and how its operations take turns on it.
#pragma once

#include "collectives.hpp"
#include "transport.hpp"

#include <fourfold/comm/communicator.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace fourfold::comm {

/// An area per rank, several of each so that a rank may be ahead of another, and counters that tell
/// how far everyone is. An operation is a number of *steps*; steps are counted over all operations,
/// which take their turns in the order in which they were called, the same on all ranks.
class SharedWindow {
 public:
  /// Bytes of an area among `ranks`: small enough for caches, and few together.
  static std::size_t area_bytes(std::size_t ranks) noexcept;
  /// Bytes of memory that a window needs.
  static std::size_t memory_bytes(std::size_t ranks) noexcept;

  /// @pre `memory` has memory_bytes(ranks) bytes, zero at first, the same on all ranks
  SharedWindow(SharedMemory memory, int rank, int ranks);

  int rank() const noexcept { return rank_; }
  int ranks() const noexcept { return ranks_; }

  /// Stages of a step, each after the one before on all ranks: every rank has put its data into its
  /// area; has used the others'; is done with all areas, so that they may be filled again.
  enum class Stage { put, used, done };
  static constexpr int stage_count = 3;
  /// That many steps may be on their way at once.
  static constexpr int slots = 4;

  /// The next operation's turn. Called once for each, in the order that all ranks agree on.
  std::uint64_t take_turn() noexcept { return turns_taken_++; }
  bool is_turn(std::uint64_t turn) const noexcept { return turn == turn_; }
  /// The operation whose turn it is has done `steps`.
  void end_turn(std::int64_t steps) noexcept;

  /// Where rank `rank` puts its data of a step of the operation whose turn it is.
  std::byte* area(int rank, std::int64_t step) const noexcept;
  /// Whether all ranks have come that far with the step.
  bool all_have(Stage stage, std::int64_t step) const noexcept;
  /// This rank has come that far with this step and all before.
  void tell(Stage stage, std::int64_t step) noexcept;
  /// Wakes the ranks that wait for what was told.
  void wake_others() { memory_.wake_others(); }

 private:
  using Counter = std::atomic<std::int64_t>;
  static_assert(Counter::is_always_lock_free);
  Counter& counter(Stage stage, int rank) const noexcept;

  SharedMemory memory_;
  int rank_;
  int ranks_;
  std::size_t area_bytes_;
  std::uint64_t turns_taken_ = 0;
  std::uint64_t turn_ = 0;
  std::int64_t first_step_ = 0;  ///< of the operation whose turn it is
};

/// A window for the ranks of `transport`; nullptr on all of them if they do not see each other's
/// memory. Collective, blocks.
/// @param messages  on the same ranks
std::unique_ptr<SharedWindow> open_window(Transport& transport, Communicator& messages);

using SharedStep = std::function<void(std::int64_t step)>;
/// An operation on a window: what a rank does in each of its `steps`.
/// @param put     into this rank's area
/// @param use     when all have put
/// @param finish  when all have used; empty if there is nothing to do
CollectiveTask in_turn(SharedWindow& window, std::uint64_t turn, std::int64_t steps, SharedStep put,
                       SharedStep use, SharedStep finish = {});

// The collectives as steps on a window of shared memory. All arithmetic is reduce(), in the order
// of ranks, so the bits are those of messages.

/// In place.
CollectiveTask shared_all_reduce(SharedWindow& window, std::uint64_t turn, TensorView data,
                                 ReduceOp op);

/// `plan.result` gets this rank's part; plan.gather is not looked at.
CollectiveTask shared_reduce_scatter(SharedWindow& window, std::uint64_t turn, ReductionPlan plan);

/// Every rank's part goes to its place in everyone's `recv`; `own` may be at its place already.
CollectiveTask shared_gather(SharedWindow& window, std::uint64_t turn, const void* own, void* recv,
                             std::vector<Extent> parts);

/// Nobody goes on before all are here.
CollectiveTask shared_barrier(SharedWindow& window, std::uint64_t turn);

}  // namespace fourfold::comm
