// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Reductions in which a sum grows on its way from rank to rank.
#pragma once

#include "collectives.hpp"

#include <vector>

namespace fourfold::comm {

/// Where one rank stands on the way of the sums, and on that of the results.
struct Route {
  std::vector<int> sources;  ///< whose partial sums are added here, in this order
  bool own_last = false;     ///< this rank's own values are the right operand; else the first
  int target = -1;           ///< who gets the partial sum; -1: here it is complete
  int result_source = -1;    ///< who sends the result; -1: it is made here
  std::vector<int> result_targets;
  int chunks_in_flight = 2;  ///< so many fill the whole way
};

/// From rank 0 through all to the last, which sends the result on to rank 0 and so round again: the
/// sum is taken in the order of ranks.
Route ring_route(int rank, int ranks);

/// Up a binomial tree to rank 0 and down again: rank r adds up ranks r .. r + 2^k - 1, then the 2^k
/// after those, so sums are taken in pairs.
Route tree_route(int rank, int ranks);

/// all_reduce along a route, chunk by chunk. Partial sums of bf16 and f16 travel as f32.
class RingTreeReduction {
 public:
  RingTreeReduction(Transport& transport, int tag, Route route, TensorView data, ReduceOp op);
  bool advance();

 private:
  /// A chunk on its way has a slot for all of it.
  struct Slot {
    std::vector<std::shared_ptr<std::byte>> incoming;  ///< of each source
    std::shared_ptr<std::byte> partial;
    std::unique_ptr<TransferBatch> up;    ///< partial sums to here, then from here
    std::unique_ptr<TransferBatch> down;  ///< the result to here, then from here
  };
  Slot& slot(std::int64_t chunk) { return slots_[chunk % std::ssize(slots_)]; }
  std::int64_t elements_of(std::int64_t chunk) const;
  std::byte* data_of(std::int64_t chunk) const;

  bool receive_partials();
  bool add_up();
  bool receive_result();
  bool forward_result();
  bool retire();

  Transport& transport_;
  int tag_;
  Route route_;
  TensorView data_;
  ReduceOp op_;
  std::int64_t chunk_elements_ = 0;
  std::int64_t chunks_ = 0;
  std::vector<Slot> slots_;
  /// Chunks that have come so far, each at most as many as the one before.
  std::int64_t expected_ = 0;   ///< their partial sums are on their way to here
  std::int64_t added_ = 0;      ///< ... are added up and on their way from here
  std::int64_t awaited_ = 0;    ///< ... have left, and the result is on its way to here
  std::int64_t forwarded_ = 0;  ///< the result is here and on its way from here
  std::int64_t retired_ = 0;    ///< nothing of them is left to do
};

/// Every rank's part round the ring, one rank further in each round.
CollectiveTask ring_gather(Transport& transport, int tag, const void* own, void* recv,
                           std::vector<Extent> parts);

}  // namespace fourfold::comm
