// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "piece_reducer.hpp"

#include <fourfold/device/stream.hpp>

#include <cstdint>
#include <utility>

namespace fourfold::parallel {

/// The sum of a bucket of gradients over the data plane, as one collective or a few one after the
/// other (its legs). Buckets under way share communicators, so who calls makes all ranks begin legs
/// in the same order, whatever has arrived where.
class BucketReducer {
 public:
  virtual ~BucketReducer() = default;
  BucketReducer() = default;
  BucketReducer(const BucketReducer&) = delete;
  BucketReducer& operator=(const BucketReducer&) = delete;

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

/// In f32, as it is.
class PlainSum : public BucketReducer {
 public:
  explicit PlainSum(PieceReducer piece) : piece_(std::move(piece)) {}

  void start(device::StreamRef stream) override {
    piece_.start(stream);
    leg_ = 0;
  }
  bool next_leg(device::StreamRef stream) override {
    if (leg_ == 0) {
      piece_.reach_replicas(stream);
    } else if (leg_ == 1) {
      piece_.wait(stream);
    }
    leg_ = leg_ < 2 ? leg_ + 1 : leg_;
    return leg_ == 2;
  }
  bool on_last_leg() const override { return leg_ >= 1; }
  void look_after() override { piece_.look_after(); }
  std::int64_t sent_bytes() const override { return piece_.sent_bytes(); }

 private:
  PieceReducer piece_;
  int leg_ = 2;
};

}  // namespace fourfold::parallel
