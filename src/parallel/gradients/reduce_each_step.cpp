// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "piece_reducer.hpp"
#include "reduction_order.hpp"

#include <fourfold/base/contract.hpp>

#include <algorithm>
#include <numeric>

namespace fourfold::parallel {
namespace {

class StepReduction : public GradientReduction {
 public:
  explicit StepReduction(const ReductionPlan& plan);

  void begin_step(device::StreamRef stream) override { plan_.parameters->zero_gradients(stream); }
  void needed(model::WeightGroup /*part*/, device::StreamRef /*stream*/) override {}
  void ready(model::WeightGroup part, model::Gradients state, device::StreamRef stream) override;
  void finish(device::StreamRef stream) override;
  void wait(std::size_t segment, device::StreamRef stream) override;
  std::int64_t sent_bytes() const override;

 private:
  /// A piece of the gradients, and how many units must be complete before it starts.
  struct Bucket {
    PieceReducer sum;
    std::size_t ready_after;
  };
  bool sharded() const noexcept { return plan_.layout->ranks() > 1; }
  void append(std::size_t segment, Range range, std::size_t ready_after);
  void add(std::size_t segment, Range range, std::size_t ready_after);
  /// @param ready  finishing units that are complete; one more: the vectors
  void start(std::size_t ready, device::StreamRef stream);
  /// The replicas' sums of all buckets before `end` begin, in one order on all ranks.
  void reach_replicas(std::size_t end);

  /// A bucket goes on to the replicas before the one so many after it starts, whatever has arrived
  /// by then: ranks begin all collectives in the same order, and none waits for the last one.
  static constexpr std::size_t buckets_in_group = 2;

  ReductionPlan plan_;
  device::Stream communication_;
  device::Event produced_;
  std::vector<Bucket> buckets_;
  FinishingOrder order_;
  std::size_t started_ = 0;
  std::size_t with_replicas_ = 0;  ///< buckets that have got that far
};

StepReduction::StepReduction(const ReductionPlan& plan)
    : plan_(plan), order_(plan.finishing_units) {
  const std::vector<model::Segment>& segments = plan_.parameters->layout().segments;
  for_each_segment(segments, order_, [&](std::size_t segment, std::size_t ready_after) {
    add(segment, segments[segment].flat, ready_after);
  });
}

void StepReduction::add(std::size_t segment, Range range, std::size_t ready_after) {
  if (!sharded() && !buckets_.empty()) {
    const Range last = buckets_.back().sum.flat();
    const bool neighbours = range.end() == last.begin || last.end() == range.begin;
    const std::int64_t together = last.count + range.count;
    if (neighbours && together * f32_bytes <= plan_.bucket_bytes) {
      buckets_.pop_back();
      append(segment, {std::min(range.begin, last.begin), together}, ready_after);
      return;
    }
  }
  append(segment, range, ready_after);
}

void StepReduction::append(std::size_t segment, Range range, std::size_t ready_after) {
  for_each_bucket(range, plan_.bucket_bytes, [&](Range piece) {
    buckets_.push_back({PieceReducer(plan_, segment, piece), ready_after});
  });
}

void StepReduction::ready(model::WeightGroup part, model::Gradients state,
                          device::StreamRef stream) {
  if (state == model::Gradients::complete) {
    order_.add(part.unit);
    start(order_.complete(), stream);
  }
}

void StepReduction::start(std::size_t ready, device::StreamRef stream) {
  for (std::size_t i = 0; i < started_; ++i) {
    buckets_[i].sum.look_after();
  }
  while (started_ < buckets_.size() && buckets_[started_].ready_after <= ready) {
    reach_replicas(started_ < buckets_in_group ? 0 : started_ - buckets_in_group + 1);
    produced_.record(stream);
    produced_.wait(communication_);
    buckets_[started_].sum.start(communication_);
    ++started_;
  }
}

void StepReduction::reach_replicas(std::size_t end) {
  for (; plan_.replicas->size() > 1 && with_replicas_ < end; ++with_replicas_) {
    buckets_[with_replicas_].sum.reach_replicas(communication_);
  }
}

void StepReduction::finish(device::StreamRef stream) {
  FOURFOLD_EXPECT(order_.complete() == order_.units());
  start(order_.units() + 1, stream);
  FOURFOLD_ENSURE(started_ == buckets_.size());
  reach_replicas(buckets_.size());
  order_.restart();
  started_ = 0;
  with_replicas_ = 0;
}

void StepReduction::wait(std::size_t segment, device::StreamRef stream) {
  const Range flat = plan_.parameters->layout().segments[segment].flat;
  for (Bucket& bucket : buckets_) {
    const Range piece = bucket.sum.flat();
    if (piece.begin < flat.end() && flat.begin < piece.end()) {
      bucket.sum.wait(stream);
    }
  }
}

std::int64_t StepReduction::sent_bytes() const {
  return std::accumulate(
      buckets_.begin(), buckets_.end(), std::int64_t{0},
      [](std::int64_t sum, const Bucket& bucket) { return sum + bucket.sum.sent_bytes(); });
}

}  // namespace

std::unique_ptr<GradientReduction> reduce_each_step(const ReductionPlan& plan) {
  FOURFOLD_EXPECT(plan.bucket_bytes >= 4);
  return std::make_unique<StepReduction>(plan);
}

}  // namespace fourfold::parallel
