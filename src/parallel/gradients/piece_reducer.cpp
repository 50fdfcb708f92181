// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "piece_reducer.hpp"

#include "reduction_order.hpp"

#include <fourfold/base/box.hpp>
#include <fourfold/base/contract.hpp>

#include <numeric>

namespace fourfold::parallel {

PieceReducer::PieceReducer(const ReductionPlan& plan, std::size_t segment, Range flat)
    : group_(plan.group),
      replicas_(plan.replicas),
      flat_(flat),
      all_(plan.parameters->gradient_memory().at(flat)),
      mine_(all_) {
  if (plan.layout->ranks() > 1) {
    counts_ = plan.layout->counts(segment, flat);
    const auto mine = counts_.begin() + group_->rank();
    mine_ = all_.rows(std::accumulate(counts_.begin(), mine, std::int64_t{0}), *mine);
  }
}

void PieceReducer::start(device::StreamRef stream) {
  FOURFOLD_EXPECT(stage_ == Stage::idle);
  stage_ = Stage::group;
  if (group_->size() > 1) {
    work_ = counts_.empty()
                ? group_->all_reduce(all_, comm::ReduceOp::sum, stream)
                : group_->reduce_scatter(all_, mine_, counts_, comm::ReduceOp::sum, stream);
  }
}

void PieceReducer::reach_replicas(device::StreamRef stream) {
  if (stage_ != Stage::group) {
    return;
  }
  work_.wait(stream);
  stage_ = Stage::replicas;
  if (replicas_->size() > 1) {
    work_ = replicas_->all_reduce(mine_, comm::ReduceOp::sum, stream);
  }
}

void PieceReducer::wait(device::StreamRef stream) {
  reach_replicas(stream);
  work_.wait(stream);
  stage_ = Stage::idle;
}

bool PieceReducer::next_leg(device::StreamRef stream) {
  if (stage_ == Stage::group) {
    reach_replicas(stream);
  } else if (stage_ == Stage::replicas) {
    wait(stream);
  }
  return stage_ == Stage::idle;
}

std::int64_t PieceReducer::sent_bytes() const {
  const std::int64_t in_group =
      counts_.empty() ? all_reduced(all_.elements(), *group_) : all_.elements() - mine_.elements();
  return (in_group + all_reduced(mine_.elements(), *replicas_)) * f32_bytes;
}

}  // namespace fourfold::parallel
