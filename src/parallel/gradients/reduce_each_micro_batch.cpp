// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "piece_reducer.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/kernels/activation.hpp>

#include <algorithm>
#include <array>

namespace fourfold::parallel {
namespace {

using model::FlatMemory;
using model::Segment;
using model::WeightGroup;

class MicroBatchReduction : public GradientReduction {
 public:
  MicroBatchReduction(const ReductionPlan& plan, device::Arena& arena);

  void begin_step(device::StreamRef stream) override;
  void needed(WeightGroup part, device::StreamRef stream) override;
  void ready(WeightGroup part, model::Gradients state, device::StreamRef stream) override;
  void finish(device::StreamRef stream) override;
  void wait(std::size_t segment, device::StreamRef stream) override;

 private:
  /// One of a part's segments on its way to the share.
  struct Leaving {
    std::size_t segment;
    comm::Work work;
    TensorView sum;  ///< this rank's part of it; absent when the share has nothing of the segment
  };
  /// A buffer that parts take turns with.
  struct Buffer {
    WeightGroup part = Segment::every_unit;  ///< that has it
    bool written = false;                    ///< since its gradients were last given away
    std::vector<Leaving> leaving;
    TensorView arriving;  ///< parts of the sums, one segment after the other
  };
  Buffer& buffer_of(WeightGroup part) {
    return buffers_[plan_.parameters->gradient_memory().buffer_of(part)];
  }
  bool has_matrices(WeightGroup part) const {
    return plan_.parameters->gradient_memory().buffer_of(part) != FlatMemory::own_memory;
  }
  bool sharded() const noexcept { return plan_.layout->ranks() > 1; }
  std::int64_t share_of(std::size_t segment) const;
  void give_away(Buffer& buffer, device::StreamRef stream);
  /// Adds what has arrived to the share and clears the buffer.
  void complete(Buffer& buffer, device::StreamRef stream);

  ReductionPlan plan_;
  device::Stream communication_;
  device::Event produced_;
  std::array<Buffer, FlatMemory::buffers> buffers_;
  std::vector<bool> begun_;               ///< by segment: the share has something of this step
  std::vector<PieceReducer> vectors_;     ///< one, or none
  std::vector<comm::Work> replica_sums_;  ///< by segment
};

MicroBatchReduction::MicroBatchReduction(const ReductionPlan& plan, device::Arena& arena)
    : plan_(plan) {
  const std::vector<Segment>& segments = plan_.parameters->layout().segments;
  begun_.resize(segments.size());
  replica_sums_.resize(segments.size());
  std::array<std::int64_t, FlatMemory::buffers> largest{};
  for (const Segment& segment : segments) {
    if (!has_matrices(segment.part())) {
      continue;
    }
    std::int64_t together = 0;
    for (std::size_t i = 0; i < segments.size(); ++i) {
      together += segments[i].part() == segment.part() ? share_of(i) : 0;
    }
    const int buffer = plan_.parameters->gradient_memory().buffer_of(segment.part());
    std::int64_t& size = largest[buffer];
    size = std::max(size, together);
  }
  for (std::size_t i = 0; sharded() && i < buffers_.size(); ++i) {
    buffers_[i].arriving =
        arena.take(device::MemoryUse::communication, DType::f32, Shape{largest[i]});
  }
  for (std::size_t i = 0; i < segments.size(); ++i) {
    if (segments[i].unit == Segment::every_unit) {
      vectors_.emplace_back(plan_, i, segments[i].flat);
    }
  }
}

std::int64_t MicroBatchReduction::share_of(std::size_t segment) const {
  const ParameterShard::Run* const run = plan_.share->find(segment);
  return run == nullptr ? 0 : run->flat.count;
}

void MicroBatchReduction::begin_step(device::StreamRef stream) {
  std::fill(begun_.begin(), begun_.end(), false);
  for (const PieceReducer& sum : vectors_) {
    const TensorView memory = plan_.parameters->gradient_memory().at(sum.flat());
    device::zero(memory.data(), memory.bytes(), stream);
  }
}

void MicroBatchReduction::needed(WeightGroup part, device::StreamRef stream) {
  if (!has_matrices(part)) {
    return;
  }
  Buffer& buffer = buffer_of(part);
  if (buffer.part != part && buffer.written) {  // a tied embedding's, which the head left behind
    give_away(buffer, stream);
  }
  complete(buffer, stream);
  buffer.part = part;
  buffer.written = true;
}

void MicroBatchReduction::ready(WeightGroup part, model::Gradients state,
                                device::StreamRef stream) {
  if (has_matrices(part)) {
    Buffer& buffer = buffer_of(part);
    const bool added = buffer.part == part && buffer.written;
    FOURFOLD_EXPECT(added || state == model::Gradients::complete);
    if (added) {
      give_away(buffer, stream);
    }
  }
  for (Buffer& buffer : buffers_) {
    for (Leaving& leaving : buffer.leaving) {
      leaving.work.test();  // a host transport moves on only when somebody looks
    }
  }
}

void MicroBatchReduction::give_away(Buffer& buffer, device::StreamRef stream) {
  const std::vector<Segment>& segments = plan_.parameters->layout().segments;
  produced_.record(stream);
  produced_.wait(communication_);
  std::int64_t arrived = 0;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    if (segments[i].part() != buffer.part) {
      continue;
    }
    const TensorView all = plan_.parameters->gradient_memory().at(segments[i].flat);
    Leaving leaving{i, {}, all};
    if (sharded()) {
      leaving.sum = buffer.arriving.rows(arrived, share_of(i));
      arrived += share_of(i);
      leaving.work =
          plan_.group->reduce_scatter(all, leaving.sum, plan_.layout->counts(i, segments[i].flat),
                                      comm::ReduceOp::sum, communication_);
    } else if (plan_.group->size() > 1) {
      leaving.work = plan_.group->all_reduce(all, comm::ReduceOp::sum, communication_);
    }
    buffer.leaving.push_back(std::move(leaving));
  }
  buffer.written = false;
}

void MicroBatchReduction::complete(Buffer& buffer, device::StreamRef stream) {
  for (Leaving& leaving : buffer.leaving) {
    leaving.work.wait(stream);
    const ParameterShard::Run* const run = plan_.share->find(leaving.segment);
    if (run == nullptr) {
      continue;
    }
    if (begun_[leaving.segment]) {
      kernels::add(run->gradient, leaving.sum, run->gradient, stream);
    } else {
      device::copy(run->gradient.data(), leaving.sum.data(), run->gradient.bytes(), stream);
    }
  }
  for (Leaving& leaving : buffer.leaving) {
    begun_[leaving.segment] = true;
    const Range flat = plan_.parameters->layout().segments[leaving.segment].flat;
    const TensorView memory = plan_.parameters->gradient_memory().at(flat);
    device::zero(memory.data(), memory.bytes(), stream);
  }
  buffer.leaving.clear();
}

void MicroBatchReduction::finish(device::StreamRef stream) {
  for (Buffer& buffer : buffers_) {
    if (buffer.written) {
      complete(buffer, stream);
      give_away(buffer, stream);
    }
  }
  for (PieceReducer& sum : vectors_) {
    produced_.record(stream);
    produced_.wait(communication_);
    sum.start(communication_);
  }
  for (Buffer& buffer : buffers_) {
    complete(buffer, stream);
  }
  if (plan_.replicas->size() > 1) {
    produced_.record(stream);
    produced_.wait(communication_);
    for (const ParameterShard::Run& run : plan_.share->runs()) {
      if (!run.vectors) {
        replica_sums_[run.segment] =
            plan_.replicas->all_reduce(run.gradient, comm::ReduceOp::sum, communication_);
      }
    }
    for (PieceReducer& sum : vectors_) {
      sum.reach_replicas(communication_);
    }
  }
}

void MicroBatchReduction::wait(std::size_t segment, device::StreamRef stream) {
  replica_sums_[segment].wait(stream);
  const Range flat = plan_.parameters->layout().segments[segment].flat;
  for (PieceReducer& sum : vectors_) {
    if (sum.flat() == flat) {
      sum.wait(stream);
    }
  }
}

}  // namespace

std::unique_ptr<GradientReduction> reduce_each_micro_batch(const ReductionPlan& plan,
                                                           device::Arena& arena) {
  return std::make_unique<MicroBatchReduction>(plan, arena);
}

}  // namespace fourfold::parallel
