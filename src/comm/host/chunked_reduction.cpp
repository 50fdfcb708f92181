// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "collectives.hpp"

#include <algorithm>
#include <utility>

namespace fourfold::comm {
namespace {

constexpr int chunks_in_flight = 2;

/// Every second chunk, one after the other.
class ChunkReduction {
 public:
  /// @param tag  and the next one: chunks in flight overtake each other, those of this do not
  ChunkReduction(Transport& transport, int tag, std::shared_ptr<const ReductionPlan> plan,
                 std::int64_t first_chunk)
      : transport_(transport), tag_(tag), plan_(std::move(plan)), chunk_(first_chunk) {
    const std::int64_t element_bytes = size_in_bytes(plan_->dtype);
    const std::int64_t piece_elements =
        std::max<std::int64_t>(1, reduction_chunk_bytes / (element_bytes * transport.size()));
    piece_bytes_ = piece_elements * element_bytes;
    start_chunk();
  }

  bool advance() {
    while (!is_finished_ && batch_->done()) {
      if (!is_gathering_) {
        reduce_chunk();
        if (plan_->gather != nullptr) {
          gather_chunk();
          continue;
        }
      }
      chunk_ += chunks_in_flight;
      start_chunk();
    }
    return is_finished_;
  }

 private:
  /// What this chunk holds of `rank`'s part; empty when that part is shorter.
  Extent piece(int rank) const { return piece_of(plan_->parts[rank], chunk_, piece_bytes_); }
  /// Where pieces of `source` for this rank wait. @pre it is another rank
  std::byte* place_of(int source) const {
    const int rank = transport_.rank();
    return scratch_.get() + (source < rank ? source : source - 1) * piece(rank).bytes;
  }
  void start_chunk();
  void reduce_chunk() const;
  void gather_chunk();

  Transport& transport_;
  int tag_;
  std::shared_ptr<const ReductionPlan> plan_;
  std::int64_t chunk_;
  std::int64_t piece_bytes_ = 0;
  bool is_gathering_ = false;  ///< or else scattering
  bool is_finished_ = false;
  std::shared_ptr<std::byte> scratch_;
  std::unique_ptr<TransferBatch> batch_;
};

void ChunkReduction::start_chunk() {
  if (chunk_ >= pieces_of(plan_->parts, piece_bytes_)) {
    is_finished_ = true;
    scratch_.reset();
    return;
  }
  is_gathering_ = false;
  if (!batch_) {
    batch_ = transport_.batch();
  }
  const int size = transport_.size();
  const int rank = transport_.rank();
  const Extent own = piece(rank);
  if (!scratch_ && own.bytes > 0) {
    scratch_ = transport_.progress().take_scratch(own.bytes * (size - 1));
  }
  for (int distance = 1; distance < size; ++distance) {
    const int source = (rank - distance + size) % size;
    if (own.bytes > 0) {
      batch_->recv(place_of(source), own.bytes, source, tag_);
    }
    const int peer = (rank + distance) % size;
    const Extent theirs = piece(peer);
    if (theirs.bytes > 0) {
      batch_->send(plan_->send + theirs.begin, theirs.bytes, peer, tag_);
    }
  }
}

void ChunkReduction::reduce_chunk() const {
  const int rank = transport_.rank();
  const Extent own = piece(rank);
  if (own.bytes == 0) {
    return;
  }
  std::vector<const void*> inputs(transport_.size());
  for (int source = 0; source < transport_.size(); ++source) {
    inputs[source] = source == rank ? plan_->send + own.begin : place_of(source);
  }
  reduce(plan_->dtype, plan_->op, inputs, plan_->result + (own.begin - plan_->parts[rank].begin),
         own.bytes / size_in_bytes(plan_->dtype), plan_->order);
}

/// By now this rank's pieces of the chunk have all been sent, so their places may be written to.
void ChunkReduction::gather_chunk() {
  is_gathering_ = true;
  const int size = transport_.size();
  const int rank = transport_.rank();
  const Extent own = piece(rank);
  for (int distance = 1; distance < size; ++distance) {
    const int source = (rank - distance + size) % size;
    const Extent theirs = piece(source);
    if (theirs.bytes > 0) {
      batch_->recv(plan_->gather + theirs.begin, theirs.bytes, source, tag_ + 1);
    }
    if (own.bytes > 0) {
      batch_->send(plan_->gather + own.begin, own.bytes, (rank + distance) % size, tag_ + 1);
    }
  }
}

}  // namespace

CollectiveTask chunked_reduction(Transport& transport, int tag, ReductionPlan plan) {
  const auto shared = std::make_shared<const ReductionPlan>(std::move(plan));
  CollectiveTask even = make_task<ChunkReduction>(transport, tag, shared, 0);
  CollectiveTask odd = make_task<ChunkReduction>(transport, tag + 2, shared, 1);
  return [even = std::move(even), odd = std::move(odd)] {
    const bool even_are_done = even();
    return odd() && even_are_done;
  };
}

}  // namespace fourfold::comm
