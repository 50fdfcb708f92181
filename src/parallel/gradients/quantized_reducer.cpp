// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "quantized_reducer.hpp"

#include <fourfold/base/box.hpp>
#include <fourfold/base/contract.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/kernels/cast.hpp>

#include <algorithm>
#include <utility>

namespace fourfold::parallel {
namespace {

/// The shares of a range in the order of the group's ranks.
std::vector<Range> shares_of(const ShardLayout& layout, std::size_t segment, Range flat) {
  std::vector<Range> parts;
  std::int64_t begin = flat.begin;
  for (const std::int64_t count : layout.counts(segment, flat)) {
    parts.push_back({begin, count});
    begin += count;
  }
  return parts;
}

std::vector<Range> even_parts(Range flat, int ranks) {
  std::vector<Range> parts;
  for (int rank = 0; rank < ranks; ++rank) {
    const Range part = even_part(flat.count, ranks, rank);
    parts.push_back({flat.begin + part.begin, part.count});
  }
  return parts;
}

}  // namespace

QuantizedReducer::QuantizedReducer(const ReductionPlan& plan, kernels::GradientCodec codec,
                                   ErrorFeedback& errors, std::size_t segment, Range flat)
    : codec_(codec),
      errors_(&errors),
      flat_(flat),
      gradient_(plan.parameters->gradient_memory().at(flat)) {
  if (plan.layout->ranks() == 1) {
    const std::vector<Range> parts = even_parts(flat, plan.group->size());
    legs_.push_back({plan.group, false, parts});
    legs_.push_back({plan.group, true, parts});
    return;
  }
  legs_.push_back({plan.group, false, shares_of(*plan.layout, segment, flat)});
  if (plan.replicas->size() > 1) {
    const std::vector<Range> parts = even_parts(legs_.front().mine(), plan.replicas->size());
    legs_.push_back({plan.replicas, false, parts});
    legs_.push_back({plan.replicas, true, parts});
  }
}

std::int64_t QuantizedReducer::all_bytes(const Leg& leg) const {
  std::int64_t bytes = 0;
  for (const Range part : leg.parts) {
    bytes += code_bytes(part);
  }
  return bytes;
}

std::int64_t QuantizedReducer::outgoing_bytes() const {
  std::int64_t bytes = 0;
  for (const Leg& leg : legs_) {
    bytes = std::max(bytes, all_bytes(leg));
  }
  return bytes;
}

std::int64_t QuantizedReducer::incoming_bytes() const {
  std::int64_t bytes = 0;
  for (const Leg& leg : legs_) {
    bytes = std::max(bytes, leg.gathers ? 0 : (leg.ranks->size() - 1) * code_bytes(leg.mine()));
  }
  return bytes;
}

std::int64_t QuantizedReducer::sent_bytes() const {
  std::int64_t bytes = 0;
  for (const Leg& leg : legs_) {
    const std::int64_t own = code_bytes(leg.mine());
    bytes += leg.gathers ? (leg.ranks->size() - 1) * own : all_bytes(leg) - own;
  }
  return bytes;
}

void QuantizedReducer::start(device::StreamRef stream) {
  leg_ = 0;
  begin(stream);
}

bool QuantizedReducer::next_leg(device::StreamRef stream) {
  if (leg_ == legs_.size()) {
    return true;
  }
  work_.wait(stream);
  end(legs_[leg_], stream);
  ++leg_;
  if (leg_ == legs_.size()) {
    return true;
  }
  begin(stream);
  return false;
}

void QuantizedReducer::begin(device::StreamRef stream) {
  const Leg& leg = legs_[leg_];
  if (leg.gathers) {
    begin_gather(leg, stream);
  } else {
    begin_scatter(leg, stream);
  }
}

void QuantizedReducer::code(Range flat, ConstTensorView error, TensorView payload,
                            device::StreamRef stream) {
  kernels::encode(codec_, gradient(flat), error, errors_->scale(), errors_->next(flat), payload,
                  stream);
}

void QuantizedReducer::begin_scatter(const Leg& leg, device::StreamRef stream) {
  const bool first = leg_ == 0;  // later ones have no error of old
  const std::size_t me = leg.ranks->rank();
  std::vector<std::int64_t> leaving(leg.parts.size());
  std::int64_t filled = 0;
  for (std::size_t rank = 0; rank < leg.parts.size(); ++rank) {
    const Range part = leg.parts[rank];
    if (rank == me) {
      continue;
    }
    leaving[rank] = code_bytes(part);
    code(part, first ? ConstTensorView(errors_->kept(part)) : ConstTensorView(),
         outgoing_.rows(filled, leaving[rank]), stream);
    filled += leaving[rank];
  }
  if (first) {
    const Range mine = leg.mine();
    kernels::add_scaled(gradient(mine), errors_->scale(), errors_->kept(mine), gradient(mine),
                        stream);
    const TensorView left = errors_->next(mine);
    device::zero(left.data(), left.bytes(), stream);
  }
  std::vector<std::int64_t> coming(leg.parts.size(), code_bytes(leg.mine()));
  coming[me] = 0;
  const std::int64_t arriving = std::ssize(leg.parts) * code_bytes(leg.mine());
  work_ =
      leg.ranks->all_to_all(outgoing_.rows(0, filled), leaving,
                            incoming_.rows(0, arriving - code_bytes(leg.mine())), coming, stream);
}

void QuantizedReducer::begin_gather(const Leg& leg, device::StreamRef stream) {
  std::vector<std::int64_t> counts;
  for (const Range part : leg.parts) {
    counts.push_back(code_bytes(part));
  }
  std::int64_t before = 0;
  for (int rank = 0; rank < leg.ranks->rank(); ++rank) {
    before += counts[rank];
  }
  const TensorView own = outgoing_.rows(before, code_bytes(leg.mine()));
  code(leg.mine(), {}, own, stream);
  work_ = leg.ranks->all_gather(own, outgoing_.rows(0, all_bytes(leg)), counts, stream);
}

void QuantizedReducer::end(const Leg& leg, device::StreamRef stream) {
  std::int64_t done = 0;
  for (int rank = 0; rank < leg.ranks->size(); ++rank) {
    if (!leg.gathers && rank == leg.ranks->rank()) {
      continue;
    }
    const Range part = leg.gathers ? leg.parts[rank] : leg.mine();
    const TensorView payload = (leg.gathers ? outgoing_ : incoming_).rows(done, code_bytes(part));
    kernels::decode(codec_, payload, gradient(part),
                    leg.gathers ? kernels::Write::replace : kernels::Write::accumulate, stream);
    done += code_bytes(part);
  }
}

}  // namespace fourfold::parallel
