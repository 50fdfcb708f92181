// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/device/stream.hpp>

#include <cstdint>

namespace fourfold::parallel {

/// The sum of a bucket of gradients over the data plane, as one collective or a few one after the
/// other (its legs). Buckets under way share communicators, so who calls makes all ranks begin legs
/// in the same order, whatever has arrived where.
class BucketReducer {
 public:
  virtual ~BucketReducer() = default;
  BucketReducer() = default;
  BucketReducer(BucketReducer&&) noexcept = default;
  BucketReducer& operator=(BucketReducer&&) noexcept = default;

  /// Begins the first leg. `stream` has produced the gradients by now, as far as it can tell.
  virtual void start(device::StreamRef stream) = 0;
  /// Orders `stream` after the leg under way, and begins the next. @return whether there is none:
  /// the gradients are summed. From then on it does nothing
  virtual bool next_leg(device::StreamRef stream) = 0;
  /// Whether the leg under way, or ended, is the last.
  virtual bool on_last_leg() const = 0;
  /// Moves a host transport on. Never blocks.
  virtual void look_after() = 0;

  virtual void finish_step(bool /*applied*/) {}
  virtual void forget(device::StreamRef /*stream*/) {}
  virtual std::int64_t sent_bytes() const = 0;
};

}  // namespace fourfold::parallel
