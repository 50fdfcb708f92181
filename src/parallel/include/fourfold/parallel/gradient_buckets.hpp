// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/box.hpp>
#include <fourfold/base/tensor_view.hpp>
#include <fourfold/comm/communicator.hpp>
#include <fourfold/comm/work.hpp>
#include <fourfold/device/stream.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fourfold::parallel {

/// Sums flat f32 gradients over data-parallel ranks while the backward pass goes on.
///
/// The gradient memory is cut into ranges, one per unit, in the order the backward pass finishes
/// them. Neighbours in memory that finish one after another share a bucket until it holds
/// bucket_bytes; a range larger than that is cut into several buckets. The all_reduce of a bucket
/// starts as soon as all of it is ready, in place: nothing is copied. It runs on a stream of its
/// own, so that on a device the backward pass goes on beside it. The size of the buckets changes no
/// bits.
class GradientBuckets {
 public:
  /// @param communicator    borrowed
  /// @param gradients       f32, rank 1; borrowed
  /// @param finishing_order disjoint ranges of `gradients`; the same on all ranks
  /// @param bucket_bytes    the same on all ranks
  /// @pre bucket_bytes >= 4
  GradientBuckets(comm::Communicator& communicator, TensorView gradients,
                  std::span<const Range> finishing_order, std::int64_t bucket_bytes);

  /// The next range in finishing order has its final gradients, as far as `stream` can tell.
  /// Starts the sums that this completes. Collective: all ranks call it once per range and step, in
  /// order.
  void next_ready(device::StreamRef stream);

  /// Orders `stream` behind all sums started since the last call.
  /// @pre next_ready() was called for every range, or for none
  void wait_all(device::StreamRef stream);

  std::size_t buckets() const noexcept { return buckets_.size(); }

 private:
  struct Bucket {
    Range elements;
    std::size_t ready_after = 0;  ///< ranges that must be ready before it starts
  };
  void append(Range range, std::size_t order, std::int64_t bucket_elements);

  comm::Communicator* communicator_;
  TensorView gradients_;
  device::Stream communication_;
  device::Event produced_;
  std::size_t ranges_;
  std::vector<Bucket> buckets_;
  std::vector<comm::Work> in_flight_;
  std::size_t ready_ = 0;
  std::size_t started_ = 0;
};

}  // namespace fourfold::parallel
