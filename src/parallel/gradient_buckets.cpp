// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/parallel/gradient_buckets.hpp>

#include <algorithm>

namespace fourfold::parallel {

GradientBuckets::GradientBuckets(comm::Communicator& communicator, TensorView gradients,
                                 std::span<const Range> finishing_order, std::int64_t bucket_bytes)
    : communicator_(&communicator), gradients_(gradients), ranges_(finishing_order.size()) {
  FOURFOLD_EXPECT(bucket_bytes >= 4);
  const std::int64_t bucket_elements = bucket_bytes / static_cast<std::int64_t>(sizeof(float));
  for (std::size_t i = 0; i < finishing_order.size(); ++i) {
    append(finishing_order[i], i, bucket_elements);
  }
  in_flight_.reserve(buckets_.size());
}

void GradientBuckets::append(Range range, std::size_t order, std::int64_t bucket_elements) {
  FOURFOLD_EXPECT(range.begin >= 0 && range.end() <= gradients_.elements());
  if (range.count == 0) {
    return;
  }
  if (!buckets_.empty()) {
    Bucket& last = buckets_.back();
    const bool neighbours =
        range.end() == last.elements.begin || last.elements.end() == range.begin;
    if (neighbours && last.elements.count + range.count <= bucket_elements) {
      last.elements.begin = std::min(last.elements.begin, range.begin);
      last.elements.count += range.count;
      last.ready_after = order + 1;
      return;
    }
  }
  for (std::int64_t done = 0; done < range.count; done += bucket_elements) {
    buckets_.push_back(
        {{range.begin + done, std::min(bucket_elements, range.count - done)}, order + 1});
  }
}

void GradientBuckets::next_ready(device::StreamRef stream) {
  FOURFOLD_EXPECT(ready_ < ranges_);
  ++ready_;
  for (comm::Work& work : in_flight_) {
    work.test();  // a host transport moves on only when somebody looks
  }
  while (started_ < buckets_.size() && buckets_[started_].ready_after <= ready_) {
    const Range& part = buckets_[started_].elements;
    produced_.record(stream);
    produced_.wait(communication_);
    in_flight_.push_back(communicator_->all_reduce(gradients_.rows(part.begin, part.count),
                                                   comm::ReduceOp::sum, communication_));
    ++started_;
  }
}

void GradientBuckets::wait_all(device::StreamRef stream) {
  FOURFOLD_EXPECT(ready_ == 0 || ready_ == ranges_);
  for (comm::Work& work : in_flight_) {
    work.wait(stream);
  }
  in_flight_.clear();
  ready_ = 0;
  started_ = 0;
}

}  // namespace fourfold::parallel
