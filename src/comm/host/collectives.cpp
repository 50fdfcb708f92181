// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "collectives.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace fourfold::comm {
namespace {

/// Up to this many ranks each sends to each at once: fewer waits than rounds.
constexpr int direct_gather_ranks = 8;

void copy_bytes(void* target, const void* source, std::int64_t bytes) {
  if (bytes > 0 && target != source) {
    std::memcpy(target, source, bytes);
  }
}

int shifted(const Endpoint& endpoint, int distance) {
  const int size = endpoint.size();
  return (endpoint.rank() + distance % size + size) % size;
}

}  // namespace

std::vector<Extent> extents_of(std::span<const std::int64_t> counts, std::int64_t element_bytes) {
  std::vector<Extent> extents;
  extents.reserve(counts.size());
  std::int64_t begin = 0;
  for (const std::int64_t count : counts) {
    extents.push_back({begin, count * element_bytes});
    begin += count * element_bytes;
  }
  return extents;
}

SmallGather::SmallGather(Endpoint& endpoint, int tag, const void* own,
                         std::span<const std::int64_t> bytes, Finish finish)
    : endpoint_(endpoint), tag_(tag), finish_(std::move(finish)), batch_(endpoint.batch()) {
  offset_.reserve(bytes.size() + 1);
  offset_.push_back(0);
  for (int distance = 0; distance < endpoint.size(); ++distance) {
    offset_.push_back(offset_.back() + bytes[shifted(endpoint, distance)]);
  }
  scratch_ = endpoint.progress().scratch().take(offset_.back());
  copy_bytes(scratch_.data(), own, offset_[1]);
  post_round();
}

/// Sends the first `blocks` blocks `distance` ranks down and gets as many from as far up.
void SmallGather::post(int distance, int blocks) {
  batch_->recv(block(distance), offset_[distance + blocks] - offset_[distance],
               shifted(endpoint_, distance), tag_);
  batch_->send(scratch_.data(), offset_[blocks], shifted(endpoint_, -distance), tag_);
}

void SmallGather::post_round() {
  const int size = endpoint_.size();
  if (size <= direct_gather_ranks) {
    for (int distance = 1; distance < size; ++distance) {
      post(distance, 1);
    }
    have_ = size;
  } else {
    const int blocks = std::min(have_, size - have_);
    post(have_, blocks);
    have_ += blocks;
  }
}

bool SmallGather::advance() {
  while (batch_->done()) {
    if (have_ < endpoint_.size()) {
      post_round();
      continue;
    }
    std::vector<const void*> blocks(offset_.size() - 1);
    for (int distance = 0; distance < endpoint_.size(); ++distance) {
      blocks[shifted(endpoint_, distance)] = block(distance);
    }
    finish_(blocks);
    return true;
  }
  return false;
}

std::unique_ptr<Machine> large_gather(Endpoint& endpoint, int tag, const void* own, void* recv,
                                      std::span<const Extent> parts) {
  auto* target = static_cast<std::byte*>(recv);
  const Extent mine = parts[endpoint.rank()];
  copy_bytes(target + mine.begin, own, mine.bytes);
  auto batch = endpoint.batch();
  for (int distance = 1; distance < endpoint.size(); ++distance) {
    const int source = shifted(endpoint, -distance);
    if (parts[source].bytes > 0) {
      batch->recv(target + parts[source].begin, parts[source].bytes, source, tag);
    }
  }
  for (int distance = 1; distance < endpoint.size() && mine.bytes > 0; ++distance) {
    batch->send(target + mine.begin, mine.bytes, shifted(endpoint, distance), tag);
  }
  return std::make_unique<Exchange>(std::move(batch));
}

std::unique_ptr<Machine> personal_exchange(Endpoint& endpoint, int tag, const void* send,
                                           std::span<const Extent> send_parts, void* recv,
                                           std::span<const Extent> recv_parts) {
  const auto* from = static_cast<const std::byte*>(send);
  auto* to = static_cast<std::byte*>(recv);
  const int rank = endpoint.rank();
  copy_bytes(to + recv_parts[rank].begin, from + send_parts[rank].begin, send_parts[rank].bytes);
  auto batch = endpoint.batch();
  for (int distance = 1; distance < endpoint.size(); ++distance) {
    const int source = shifted(endpoint, -distance);
    if (recv_parts[source].bytes > 0) {
      batch->recv(to + recv_parts[source].begin, recv_parts[source].bytes, source, tag);
    }
  }
  for (int distance = 1; distance < endpoint.size(); ++distance) {
    const int peer = shifted(endpoint, distance);
    if (send_parts[peer].bytes > 0) {
      batch->send(from + send_parts[peer].begin, send_parts[peer].bytes, peer, tag);
    }
  }
  return std::make_unique<Exchange>(std::move(batch));
}

TreeBroadcast::TreeBroadcast(Endpoint& endpoint, int tag, std::byte* data, std::int64_t bytes,
                             int root)
    : tag_(tag),
      data_(data),
      bytes_(bytes),
      chunks_((bytes + broadcast_chunk_bytes - 1) / broadcast_chunk_bytes),
      incoming_(endpoint.batch()),
      outgoing_(endpoint.batch()) {
  // Counted from the root, node v has parent v without its lowest set bit, and children v + 2^k for
  // every 2^k below that bit.
  const int size = endpoint.size();
  const int node = (endpoint.rank() - root + size) % size;
  int bit = 1;
  for (; bit < size && (node & bit) == 0; bit <<= 1) {
  }
  if (node != 0) {
    parent_ = (node - bit + root) % size;
  }
  for (int step = bit >> 1; step > 0; step >>= 1) {
    if (node + step < size) {
      children_.push_back((node + step + root) % size);
    }
  }
  for (std::int64_t index = 0; index < chunks_; ++index) {
    if (parent_ < 0) {
      forward(index);
    }
  }
  if (parent_ < 0) {
    arrived_ = chunks_;
  } else if (chunks_ > 0) {
    incoming_->recv(data_, chunk(0).bytes, parent_, tag_);
  }
}

Extent TreeBroadcast::chunk(std::int64_t index) const {
  const std::int64_t begin = index * broadcast_chunk_bytes;
  return {begin, std::min(broadcast_chunk_bytes, bytes_ - begin)};
}

void TreeBroadcast::forward(std::int64_t index) {
  const Extent part = chunk(index);
  for (const int child : children_) {
    outgoing_->send(data_ + part.begin, part.bytes, child, tag_);
  }
}

bool TreeBroadcast::advance() {
  while (arrived_ < chunks_ && incoming_->done()) {
    if (arrived_ + 1 < chunks_) {
      const Extent next = chunk(arrived_ + 1);
      incoming_->recv(data_ + next.begin, next.bytes, parent_, tag_);
    }
    forward(arrived_);
    ++arrived_;
  }
  return arrived_ == chunks_ && outgoing_->done();
}

}  // namespace fourfold::comm
