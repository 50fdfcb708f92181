// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The collectives as state machines over messages. Transports only move bytes; all arithmetic is
/// reduce(), in the order of ranks or of pairs.
#pragma once

#include "endpoint.hpp"
#include "reduction.hpp"

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

/// Bytes [begin, begin + bytes) of one rank.
struct Extent {
  std::int64_t begin = 0;
  std::int64_t bytes = 0;
};
/// One extent per rank, one after the other; counts in elements of `element_bytes`.
std::vector<Extent> extents_of(std::span<const std::int64_t> counts, std::int64_t element_bytes);

/// Every rank's small block to every rank, through scratch memory: directly among few ranks, in
/// log2(ranks) rounds among many (Bruck et al., "Efficient algorithms for all-to-all
/// communications", 1997). With empty blocks it is a barrier.
class SmallGather : public Machine {
 public:
  /// `blocks[r]` points to rank r's block; valid during the call.
  using Finish = std::function<void(std::span<const void* const> blocks)>;
  SmallGather(Endpoint& endpoint, int tag, const void* own, std::span<const std::int64_t> bytes,
              Finish finish);
  bool advance() override;

 private:
  void post_round();
  std::byte* block(int distance) const { return scratch_.data() + offset_[distance]; }
  void post(int distance, int blocks);

  Endpoint& endpoint_;
  int tag_;
  /// Block d belongs to rank (own rank + d) modulo ranks; offsets into scratch_.
  std::vector<std::int64_t> offset_;
  ScratchPool::Lease scratch_;
  Finish finish_;
  std::unique_ptr<TransferBatch> batch_;
  int have_ = 1;  ///< blocks 0 .. have_ - 1 are here or on their way in this round
};

/// Messages that were posted together and nothing else.
class Exchange : public Machine {
 public:
  explicit Exchange(std::unique_ptr<TransferBatch> batch) : batch_(std::move(batch)) {}
  bool advance() override { return batch_->done(); }

 private:
  std::unique_ptr<TransferBatch> batch_;
};

/// Every rank's part goes to its place in everyone's `recv`, directly.
std::unique_ptr<Machine> large_gather(Endpoint& endpoint, int tag, const void* own, void* recv,
                                      std::span<const Extent> parts);

/// Part s of `send` goes to rank s; part r of `recv` comes from rank r.
std::unique_ptr<Machine> personal_exchange(Endpoint& endpoint, int tag, const void* send,
                                           std::span<const Extent> send_parts, void* recv,
                                           std::span<const Extent> recv_parts);

/// reduce_scatter, and all_reduce when the reduced parts are sent back to all. Rank r reduces part
/// r: it gets the others' pieces of it, chunk by chunk, two chunks in flight.
class ChunkedReduction : public Machine {
 public:
  struct Plan {
    const std::byte* send = nullptr;  ///< all parts of this rank
    std::vector<Extent> parts;        ///< of send, one per rank
    std::byte* result = nullptr;      ///< this rank's reduced part; may be its place in send
    std::byte* gather = nullptr;      ///< where all reduced parts go; nullptr: nowhere
    DType dtype = DType::f32;
    ReduceOp op = ReduceOp::sum;
    Order order = Order::ranks;
  };
  ChunkedReduction(Endpoint& endpoint, int tag, Plan plan);
  bool advance() override;

 private:
  enum class Stage { scattering, gathering, finished };
  struct Slot {
    std::int64_t chunk = 0;
    Stage stage = Stage::scattering;
    ScratchPool::Lease scratch;
    std::unique_ptr<TransferBatch> batch;
  };
  static constexpr int slot_count = 2;

  Extent piece(int rank, std::int64_t chunk) const;
  int tag(int slot, Stage stage) const;
  void start_chunk(int slot);
  void reduce_chunk(Slot& slot) const;
  void gather_chunk(int slot);
  bool advance_slot(int slot);

  Endpoint& endpoint_;
  int tag_;
  Plan plan_;
  std::int64_t piece_bytes_ = 0;
  std::int64_t chunks_ = 0;
  Slot slots_[slot_count];
};

/// Along a binomial tree from the root, chunk by chunk.
class TreeBroadcast : public Machine {
 public:
  TreeBroadcast(Endpoint& endpoint, int tag, std::byte* data, std::int64_t bytes, int root);
  bool advance() override;

 private:
  Extent chunk(std::int64_t index) const;
  void forward(std::int64_t index);

  int tag_;
  std::byte* data_;
  std::int64_t bytes_;
  int parent_ = -1;
  std::vector<int> children_;
  std::int64_t chunks_ = 0;
  std::int64_t arrived_ = 0;  ///< chunks that are here and on their way to the children
  std::unique_ptr<TransferBatch> incoming_;
  std::unique_ptr<TransferBatch> outgoing_;
};

/// Puts a check in front of a collective: all ranks exchange what they called and with what; only
/// when they agree is the operation itself started. For contract builds. Does not block either.
class CheckedMachine : public Machine {
 public:
  using Start = std::function<std::unique_ptr<Machine>()>;
  /// @param call  the operation and every argument that must agree on all ranks
  CheckedMachine(Endpoint& endpoint, int tag, std::string_view communicator, std::string_view call,
                 Start start);
  bool advance() override;

 private:
  void compare(std::span<const void* const> blocks) const;

  Endpoint& endpoint_;
  std::string communicator_;
  Start start_;
  std::unique_ptr<SmallGather> gather_;
  std::unique_ptr<Machine> machine_;
};

}  // namespace fourfold::comm
