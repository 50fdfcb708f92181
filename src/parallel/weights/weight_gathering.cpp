// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/parallel/weight_gathering.hpp>

namespace fourfold::parallel {

using model::FlatMemory;
using model::Segment;
using model::WeightGroup;

WeightGathering::WeightGathering(comm::Communicator& group, const model::Parameters& parameters,
                                 const ParameterShard& share, const ShardLayout& layout)
    : group_(&group),
      parameters_(&parameters),
      share_(&share),
      layout_(&layout),
      works_(parameters.layout().segments.size()) {
  FOURFOLD_EXPECT(layout.ranks() == 1 || layout.ranks() == group.size());
}

WeightGathering::Buffer* WeightGathering::buffer_of(WeightGroup part) {
  const int buffer = parameters_->weight_memory().buffer_of(part);
  return buffer == FlatMemory::own_memory ? nullptr : &buffers_[buffer];
}

bool WeightGathering::is_double_buffered(std::size_t segment) const {
  const WeightGroup part = parameters_->layout().segments[segment].part();
  return parameters_->weight_memory().buffer_of(part) != FlatMemory::own_memory;
}

comm::Work WeightGathering::gather(std::size_t segment) {
  const Range flat = parameters_->layout().segments[segment].flat;
  const TensorView all = parameters_->weight_memory().at(flat);
  const ParameterShard::Run* const run = share_->find(segment);
  const ConstTensorView mine = run == nullptr ? ConstTensorView(all.rows(0, 0)) : run->weight;
  return group_->all_gather(mine, all, layout_->counts(segment, flat), communication_);
}

void WeightGathering::updated(std::size_t segment, device::StreamRef stream) {
  if (layout_->ranks() == 1) {
    return;
  }
  produced_.record(stream);
  produced_.wait(communication_);
  if (!is_double_buffered(segment)) {
    works_[segment] = gather(segment);
    return;
  }
  const WeightGroup part = parameters_->layout().segments[segment].part();
  Buffer* const buffer = buffer_of(part);
  FOURFOLD_EXPECT(buffer->in_use == 0);
  if (buffer->part == part) {
    buffer->part = Segment::every_unit;
  }
}

void WeightGathering::begin(Buffer& buffer, WeightGroup part) {
  const std::vector<Segment>& segments = parameters_->layout().segments;
  buffer.gathers.clear();
  buffer.last_read.wait(communication_);
  for (std::size_t i = 0; i < segments.size(); ++i) {
    if (segments[i].part() == part) {
      buffer.gathers.push_back(gather(i));
    }
  }
  buffer.part = part;
}

void WeightGathering::acquire(WeightGroup part, device::StreamRef stream) {
  const std::vector<Segment>& segments = parameters_->layout().segments;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    if (segments[i].unit == part.unit || segments[i].unit == Segment::every_unit) {
      works_[i].wait(stream);
    }
  }
  Buffer* const buffer = buffer_of(part);
  if (buffer == nullptr) {
    return;
  }
  if (buffer->part != part) {
    FOURFOLD_EXPECT(buffer->in_use == 0);
    begin(*buffer, part);
  }
  for (comm::Work& work : buffer->gathers) {
    work.wait(stream);
  }
  buffer->gathers.clear();
  ++buffer->in_use;
}

void WeightGathering::release(WeightGroup part, device::StreamRef stream) {
  if (Buffer* const buffer = buffer_of(part)) {
    FOURFOLD_EXPECT(buffer->in_use > 0);
    --buffer->in_use;
    buffer->last_read.record(stream);
  }
}

void WeightGathering::prefetch(WeightGroup part) {
  Buffer* const buffer = buffer_of(part);
  if (buffer != nullptr && buffer->part != part && buffer->in_use == 0) {
    begin(*buffer, part);
  }
}

void WeightGathering::wait(device::StreamRef stream) {
  for (comm::Work& work : works_) {
    work.wait(stream);
  }
  for (Buffer& buffer : buffers_) {
    for (comm::Work& work : buffer.gathers) {
      work.wait(stream);
    }
    buffer.gathers.clear();
  }
}

}  // namespace fourfold::parallel
