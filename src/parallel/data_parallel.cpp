// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/parallel/data_parallel.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace fourfold::parallel {
namespace {

/// The backward pass finishes units from the last to the first.
std::vector<Range> finishing_order(const model::Parameters& parameters) {
  std::vector<Range> order;
  for (const model::UnitMemory& unit : parameters.units()) {
    order.push_back(unit.flat);
  }
  std::reverse(order.begin(), order.end());
  return order;
}

std::int64_t bucket_bytes(double megabytes) {
  return std::max<std::int64_t>(4, static_cast<std::int64_t>(megabytes * 1e6));
}

}  // namespace

DataParallelSeams::DataParallelSeams(comm::Communicator& data_plane,
                                     const model::Parameters& parameters, double bucket_mb)
    : alone_(data_plane.size() == 1),
      buckets_(data_plane, parameters.gradients(), finishing_order(parameters),
               bucket_bytes(bucket_mb)) {}

void DataParallelSeams::gradients_ready(int /*unit*/, model::Gradients state,
                                        device::StreamRef stream) {
  if (!alone_ && state == model::Gradients::complete) {
    buckets_.next_ready(stream);
  }
}

void DataParallelSeams::wait_all(device::StreamRef stream) {
  buckets_.wait_all(stream);
}

}  // namespace fourfold::parallel
