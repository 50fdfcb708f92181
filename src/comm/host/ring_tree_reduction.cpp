// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "ring_tree_reduction.hpp"

#include "reduction.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace fourfold::comm {
namespace {

/// Of a rank's own values, in all chunks on their way together.
constexpr std::int64_t bytes_in_flight = std::int64_t{2} << 20;

}  // namespace

Route ring_route(int rank, int ranks) {
  Route route;
  const int last = ranks - 1;
  if (rank > 0) {
    route.sources = {rank - 1};
  }
  route.own_last = true;
  route.target = rank == last ? -1 : rank + 1;
  route.result_source = rank == last ? -1 : (rank + last) % ranks;
  if (ranks > 1 && (rank + 1) % ranks != last) {
    route.result_targets = {(rank + 1) % ranks};
  }
  route.chunks_in_flight = std::clamp(2 * ranks, 2, 16);
  return route;
}

Route tree_route(int rank, int ranks) {
  Route route;
  const unsigned place = rank;
  const unsigned all = ranks;
  const int below = rank == 0 ? std::bit_ceil(all) : 1U << std::countr_zero(place);
  for (int step = 1; step < below && rank + step < ranks; step *= 2) {
    route.sources.push_back(rank + step);
  }
  // The longest way down first.
  route.result_targets.assign(route.sources.rbegin(), route.sources.rend());
  route.target = rank == 0 ? -1 : rank - below;
  route.result_source = route.target;
  const int rounds = std::bit_width(all - 1);
  route.chunks_in_flight = std::clamp(2 * rounds, 2, 8);
  return route;
}

RingTreeReduction::RingTreeReduction(Transport& transport, int tag, Route route, TensorView data,
                                     ReduceOp op)
    : transport_(transport), tag_(tag), route_(std::move(route)), data_(data), op_(op) {
  const std::int64_t element_bytes = size_in_bytes(data.dtype());
  chunk_elements_ = bytes_in_flight / route_.chunks_in_flight / element_bytes;
  chunks_ = (data.elements() + chunk_elements_ - 1) / chunk_elements_;
  slots_.resize(std::min<std::int64_t>(chunks_, route_.chunks_in_flight));
  const std::size_t partial_bytes =
      std::min(chunk_elements_, data.elements()) * size_in_bytes(accumulator_of(data.dtype()));
  for (Slot& each : slots_) {
    each.up = transport.batch();
    each.down = transport.batch();
    each.partial = transport.progress().take_scratch(partial_bytes);
    for (std::size_t source = 0; source < route_.sources.size(); ++source) {
      each.incoming.push_back(transport.progress().take_scratch(partial_bytes));
    }
  }
}

std::int64_t RingTreeReduction::elements_of(std::int64_t chunk) const {
  return std::min(chunk_elements_, data_.elements() - chunk * chunk_elements_);
}

std::byte* RingTreeReduction::data_of(std::int64_t chunk) const {
  return at(data_.data(), chunk * chunk_elements_ * size_in_bytes(data_.dtype()));
}

bool RingTreeReduction::receive_partials() {
  if (expected_ == chunks_ || expected_ == retired_ + std::ssize(slots_)) {
    return false;
  }
  Slot& chunk = slot(expected_);
  const std::size_t bytes = elements_of(expected_) * size_in_bytes(accumulator_of(data_.dtype()));
  for (std::size_t i = 0; i < route_.sources.size(); ++i) {
    chunk.up->recv(chunk.incoming[i].get(), bytes, route_.sources[i], tag_);
  }
  ++expected_;
  return true;
}

bool RingTreeReduction::add_up() {
  if (added_ == expected_ || !slot(added_).up->done()) {
    return false;
  }
  Slot& chunk = slot(added_);
  const std::int64_t elements = elements_of(added_);
  std::byte* const partial = chunk.partial.get();
  begin_partial(data_.dtype(), data_of(added_), partial, elements);
  for (const std::shared_ptr<std::byte>& incoming : chunk.incoming) {
    const std::byte* const left = route_.own_last ? incoming.get() : partial;
    const std::byte* const right = route_.own_last ? partial : incoming.get();
    join_partials(data_.dtype(), op_, left, right, partial, elements);
  }
  if (route_.target < 0) {
    end_partial(data_.dtype(), op_, transport_.size(), partial, data_of(added_), elements);
  } else {
    chunk.up->send(partial, elements * size_in_bytes(accumulator_of(data_.dtype())), route_.target,
                   tag_);
  }
  ++added_;
  return true;
}

/// By now this rank's values of the chunk are in the sum, so their place may be written to.
bool RingTreeReduction::receive_result() {
  if (awaited_ == added_ || !slot(awaited_).up->done()) {
    return false;
  }
  if (route_.result_source >= 0) {
    slot(awaited_).down->recv(data_of(awaited_),
                              elements_of(awaited_) * size_in_bytes(data_.dtype()),
                              route_.result_source, tag_ + 1);
  }
  ++awaited_;
  return true;
}

bool RingTreeReduction::forward_result() {
  if (forwarded_ == awaited_ || !slot(forwarded_).down->done()) {
    return false;
  }
  for (const int target : route_.result_targets) {
    slot(forwarded_)
        .down->send(data_of(forwarded_), elements_of(forwarded_) * size_in_bytes(data_.dtype()),
                    target, tag_ + 1);
  }
  ++forwarded_;
  return true;
}

bool RingTreeReduction::retire() {
  if (retired_ == forwarded_ || !slot(retired_).down->done()) {
    return false;
  }
  ++retired_;
  return true;
}

bool RingTreeReduction::advance() {
  bool moved = true;
  while (moved && retired_ < chunks_) {
    moved = receive_partials();
    moved = add_up() || moved;
    moved = receive_result() || moved;
    moved = forward_result() || moved;
    moved = retire() || moved;
  }
  return retired_ == chunks_;
}

CollectiveTask ring_gather(Transport& transport, int tag, const void* own, void* recv,
                           std::vector<Extent> parts) {
  const int ranks = transport.size();
  const int rank = transport.rank();
  copy_bytes(at(recv, parts[rank].begin), own, parts[rank].bytes);
  const std::shared_ptr<TransferBatch> batch = transport.batch();
  return [=, parts = std::move(parts), round = 0]() mutable {
    while (batch->done()) {
      if (round == ranks - 1) {
        return true;
      }
      // A rank passes on what is of the rank `round` places before it and gets what is one further
      // back.
      const Extent sent = parts[(rank - round + ranks) % ranks];
      const Extent got = parts[(rank - round - 1 + ranks) % ranks];
      if (got.bytes > 0) {
        batch->recv(at(recv, got.begin), got.bytes, (rank - 1 + ranks) % ranks, tag);
      }
      if (sent.bytes > 0) {
        batch->send(at(recv, sent.begin), sent.bytes, (rank + 1) % ranks, tag);
      }
      ++round;
    }
    return false;
  };
}

}  // namespace fourfold::comm
