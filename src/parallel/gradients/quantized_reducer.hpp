// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "bucket_reducer.hpp"

#include <fourfold/comm/work.hpp>
#include <fourfold/kernels/compression.hpp>
#include <fourfold/parallel/error_feedback.hpp>
#include <fourfold/parallel/gradient_reduction.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fourfold::parallel {

/// The sum of a piece of matrices, coded element by element (gradient_compression.hpp): each rank
/// of a group gets the others' code of its part and adds it up; parts that nobody else will have
/// are coded again and gathered.
class QuantizedReducer : public BucketReducer {
 public:
  /// @param flat  of the piece, inside `segment`
  QuantizedReducer(const ReductionPlan& plan, kernels::GradientCodec codec, ErrorFeedback& errors,
                   std::size_t segment, Range flat);

  std::size_t legs() const noexcept { return legs_.size(); }
  /// Bytes that it needs from start() until it is summed, for what it sends and what comes.
  std::int64_t outgoing_bytes() const;
  std::int64_t incoming_bytes() const;
  /// Memory (u8) for them, at least so many, which it may share with sums that are not under way.
  void use(TensorView outgoing, TensorView incoming) {
    outgoing_ = outgoing;
    incoming_ = incoming;
  }

  void start(device::StreamRef stream) override;
  bool next_leg(device::StreamRef stream) override;
  bool on_last_leg() const override { return leg_ + 1 >= legs_.size(); }
  void look_after() override { work_.test(); }
  std::int64_t sent_bytes() const override;

 private:
  /// One collective. `parts` are flat ranges in the order of ranks.
  struct Leg {
    comm::Communicator* ranks;
    bool gathers;  ///< else it sums up, each rank its part
    std::vector<Range> parts;
    Range mine() const { return parts[ranks->rank()]; }
  };
  std::int64_t code_bytes(Range flat) const { return payload_bytes(codec_, flat.count); }
  /// Of all parts.
  std::int64_t all_bytes(const Leg& leg) const;
  TensorView gradient(Range flat) const {
    return gradient_.rows(flat.begin - flat_.begin, flat.count);
  }
  void code(Range flat, ConstTensorView error, TensorView payload, device::StreamRef stream);
  void begin(device::StreamRef stream);
  void begin_scatter(const Leg& leg, device::StreamRef stream);
  void begin_gather(const Leg& leg, device::StreamRef stream);
  void end(const Leg& leg, device::StreamRef stream);

  kernels::GradientCodec codec_;
  ErrorFeedback* errors_;
  Range flat_;
  TensorView gradient_;
  std::vector<Leg> legs_;
  std::size_t leg_ = 0;
  TensorView outgoing_;
  TensorView incoming_;
  comm::Work work_;
};

}  // namespace fourfold::parallel
