// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bucket_reducer.hpp"

#include <fourfold/comm/work.hpp>
#include <fourfold/parallel/gradient_reduction.hpp>

#include <cstdint>
#include <span>
#include <vector>

namespace fourfold::parallel {

/// The sum of one piece of gradient memory over the group, and then over the replicas: an
/// all_reduce, or a reduce_scatter of which this rank's part stays where it is. In f32, as it is.
class PieceReducer : public BucketReducer {
 public:
  /// @param flat     of the piece; in one segment, unless nothing is sharded
  /// @param segment  which one; ignored unless sharded
  PieceReducer(const ReductionPlan& plan, std::size_t segment, Range flat);

  Range flat() const noexcept { return flat_; }
  void start(device::StreamRef stream) override;
  /// Ends the sum over the group, if need be, and begins that over the replicas.
  void reach_replicas(device::StreamRef stream);
  void wait(device::StreamRef stream);

  bool next_leg(device::StreamRef stream) override;
  bool on_last_leg() const override { return stage_ != Stage::group; }
  void look_after() override { work_.test(); }
  std::int64_t sent_bytes() const override;

 private:
  enum class Stage : std::uint8_t { idle, group, replicas };

  comm::Communicator* group_;
  comm::Communicator* replicas_;
  Range flat_;
  TensorView all_;
  TensorView mine_;  ///< part of all_
  std::vector<std::int64_t> counts_;
  Stage stage_ = Stage::idle;
  comm::Work work_;
};

}  // namespace fourfold::parallel
