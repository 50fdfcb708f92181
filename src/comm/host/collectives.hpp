// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The collectives as state machines over messages. Transports only move bytes; all arithmetic is
/// reduce(), in the order of ranks or of pairs.
#pragma once

#include "reduction.hpp"
#include "transport.hpp"

#include <fourfold/comm/communicator.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::comm {

/// Tags that one operation uses: base + 0 .. base + tags_per_operation - 1.
inline constexpr int tags_per_operation = 8;

/// Bytes up to which latency matters more than the amount of data moved.
inline constexpr std::int64_t small_bytes = 16 * 1024;

/// Bytes of a buffer that are reduced at a time: bounds the scratch memory (two such chunks per
/// operation) and lets sending, adding and receiving overlap.
inline constexpr std::int64_t reduction_chunk_bytes = std::int64_t{4} << 20;
inline constexpr std::int64_t broadcast_chunk_bytes = std::int64_t{1} << 20;

// Where the parts of a buffer lie, in bytes.

inline const std::byte* at(const void* base, std::int64_t bytes) {
  return static_cast<const std::byte*>(base) + bytes;
}
inline std::byte* at(void* base, std::int64_t bytes) {
  return static_cast<std::byte*>(base) + bytes;
}
inline std::int64_t bytes_of(ConstTensorView view) {
  return view.bytes();
}
/// Unless they are the same place.
void copy_bytes(void* target, const void* source, std::int64_t bytes);

/// Bytes [begin, begin + bytes) of one rank.
struct Extent {
  std::int64_t begin = 0;
  std::int64_t bytes = 0;
};
/// One extent per rank, one after the other.
std::vector<Extent> extents_of(std::span<const std::int64_t> counts, DType dtype);
/// One extent per rank, of as even counts as there can be.
std::vector<Extent> even_extents(ConstTensorView data, int ranks);

/// Pieces of `piece_bytes`, the last one shorter, that the longest part has.
std::int64_t pieces_of(std::span<const Extent> parts, std::int64_t piece_bytes);
/// The part's piece number `index`; empty when the part is shorter.
Extent piece_of(const Extent& part, std::int64_t index, std::int64_t piece_bytes);

/// Every rank's small block to every rank, through scratch memory: directly among few ranks, in
/// log2(ranks) rounds among many (Bruck et al., "Efficient algorithms for all-to-all
/// communications", 1997). With empty blocks it is a barrier.
class SmallGather {
 public:
  /// `blocks[r]` points to rank r's block; valid during the call.
  using Finish = std::function<void(std::span<const void* const> blocks)>;
  SmallGather(Transport& transport, int tag, const void* own, std::span<const std::int64_t> bytes,
              Finish finish);
  bool advance();

 private:
  void post_round();
  std::byte* block(int distance) const { return scratch_.get() + offset_[distance]; }
  void post(int distance, int blocks);

  Transport& transport_;
  int tag_;
  /// Block d belongs to rank (own rank + d) modulo ranks; offsets into scratch_.
  std::vector<std::int64_t> offset_;
  std::shared_ptr<std::byte> scratch_;
  Finish finish_;
  std::unique_ptr<TransferBatch> batch_;
  int have_ = 1;  ///< blocks 0 .. have_ - 1 are here or on their way in this round
};

/// Messages that were posted together and nothing else.
CollectiveTask exchange(std::unique_ptr<TransferBatch> batch);

/// Every rank's part goes to its place in everyone's `recv`, directly.
CollectiveTask large_gather(Transport& transport, int tag, const void* own, void* recv,
                            std::span<const Extent> parts);

/// Part s of `send` goes to rank s; part r of `recv` comes from rank r.
CollectiveTask personal_exchange(Transport& transport, int tag, const void* send,
                                 std::span<const Extent> send_parts, void* recv,
                                 std::span<const Extent> recv_parts);

struct ReductionPlan {
  const std::byte* send = nullptr;  ///< all parts of this rank
  std::vector<Extent> parts;        ///< of send, one per rank
  std::byte* result = nullptr;      ///< this rank's reduced part; may be its place in send
  std::byte* gather = nullptr;      ///< where all reduced parts go; nullptr: nowhere
  DType dtype = DType::f32;
  ReduceOp op = ReduceOp::sum;
  Order order = Order::ranks;
};
/// reduce_scatter, and all_reduce when the reduced parts are sent back to all. Rank r reduces part
/// r: it gets the others' pieces of it, chunk by chunk, two chunks in flight.
CollectiveTask chunked_reduction(Transport& transport, int tag, ReductionPlan plan);

/// Along a binomial tree from the root, chunk by chunk.
CollectiveTask tree_broadcast(Transport& transport, int tag, void* data, std::int64_t bytes,
                              int root);

/// Puts a check in front of a collective: all ranks exchange what they called and with what; only
/// when they agree is the operation itself started. For contract builds. Does not block either.
/// @param call   the operation and every argument that must agree on all ranks
/// @param start  makes the operation
CollectiveTask checked(Transport& transport, int tag, std::string communicator,
                       std::string_view call, std::function<CollectiveTask()> start);

}  // namespace fourfold::comm
