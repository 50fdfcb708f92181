// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "collectives.hpp"

#include <fourfold/base/box.hpp>

#include <algorithm>
#include <cstring>
#include <utility>

namespace fourfold::comm {
namespace {

/// Up to this many ranks each sends to each at once: fewer waits than rounds.
constexpr int direct_gather_ranks = 8;

int shifted(const Transport& transport, int distance) {
  const int size = transport.size();
  return (transport.rank() + distance % size + size) % size;
}

}  // namespace

void copy_bytes(void* target, const void* source, std::int64_t bytes) {
  if (bytes > 0 && target != source) {
    std::memcpy(target, source, bytes);
  }
}

std::vector<Extent> extents_of(std::span<const std::int64_t> counts, DType dtype) {
  const std::int64_t element_bytes = size_in_bytes(dtype);
  std::vector<Extent> extents;
  extents.reserve(counts.size());
  std::int64_t begin = 0;
  for (const std::int64_t count : counts) {
    extents.push_back({begin, count * element_bytes});
    begin += count * element_bytes;
  }
  return extents;
}

std::vector<Extent> even_extents(ConstTensorView data, int ranks) {
  std::vector<std::int64_t> counts(ranks);
  for (int part = 0; part < ranks; ++part) {
    counts[part] = even_part(data.elements(), ranks, part).count;
  }
  return extents_of(counts, data.dtype());
}

std::int64_t pieces_of(std::span<const Extent> parts, std::int64_t piece_bytes) {
  std::int64_t longest = 0;
  for (const Extent& part : parts) {
    longest = std::max(longest, part.bytes);
  }
  return (longest + piece_bytes - 1) / piece_bytes;
}

Extent piece_of(const Extent& part, std::int64_t index, std::int64_t piece_bytes) {
  const std::int64_t begin = std::min(index * piece_bytes, part.bytes);
  return {part.begin + begin, std::min(piece_bytes, part.bytes - begin)};
}

SmallGather::SmallGather(Transport& transport, int tag, const void* own,
                         std::span<const std::int64_t> bytes, Finish finish)
    : transport_(transport), tag_(tag), finish_(std::move(finish)), batch_(transport.batch()) {
  offset_.reserve(bytes.size() + 1);
  offset_.push_back(0);
  for (int distance = 0; distance < transport.size(); ++distance) {
    offset_.push_back(offset_.back() + bytes[shifted(transport, distance)]);
  }
  scratch_ = transport.progress().take_scratch(offset_.back());
  copy_bytes(scratch_.get(), own, offset_[1]);
  post_round();
}

/// Sends the first `blocks` blocks `distance` ranks down and gets as many from as far up.
void SmallGather::post(int distance, int blocks) {
  batch_->recv(block(distance), offset_[distance + blocks] - offset_[distance],
               shifted(transport_, distance), tag_);
  batch_->send(scratch_.get(), offset_[blocks], shifted(transport_, -distance), tag_);
}

void SmallGather::post_round() {
  const int size = transport_.size();
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
    if (have_ < transport_.size()) {
      post_round();
      continue;
    }
    std::vector<const void*> blocks(offset_.size() - 1);
    for (int distance = 0; distance < transport_.size(); ++distance) {
      blocks[shifted(transport_, distance)] = block(distance);
    }
    finish_(blocks);
    return true;
  }
  return false;
}

CollectiveTask exchange(std::unique_ptr<TransferBatch> batch) {
  return [batch = std::shared_ptr(std::move(batch))] { return batch->done(); };
}

CollectiveTask large_gather(Transport& transport, int tag, const void* own, void* recv,
                            std::span<const Extent> parts) {
  const Extent mine = parts[transport.rank()];
  copy_bytes(at(recv, mine.begin), own, mine.bytes);
  auto batch = transport.batch();
  for (int distance = 1; distance < transport.size(); ++distance) {
    const int source = shifted(transport, -distance);
    if (parts[source].bytes > 0) {
      batch->recv(at(recv, parts[source].begin), parts[source].bytes, source, tag);
    }
  }
  for (int distance = 1; distance < transport.size() && mine.bytes > 0; ++distance) {
    batch->send(at(recv, mine.begin), mine.bytes, shifted(transport, distance), tag);
  }
  return exchange(std::move(batch));
}

CollectiveTask personal_exchange(Transport& transport, int tag, const void* send,
                                 std::span<const Extent> send_parts, void* recv,
                                 std::span<const Extent> recv_parts) {
  const int rank = transport.rank();
  copy_bytes(at(recv, recv_parts[rank].begin), at(send, send_parts[rank].begin),
             send_parts[rank].bytes);
  auto batch = transport.batch();
  for (int distance = 1; distance < transport.size(); ++distance) {
    const int source = shifted(transport, -distance);
    if (recv_parts[source].bytes > 0) {
      batch->recv(at(recv, recv_parts[source].begin), recv_parts[source].bytes, source, tag);
    }
  }
  for (int distance = 1; distance < transport.size(); ++distance) {
    const int peer = shifted(transport, distance);
    if (send_parts[peer].bytes > 0) {
      batch->send(at(send, send_parts[peer].begin), send_parts[peer].bytes, peer, tag);
    }
  }
  return exchange(std::move(batch));
}

CollectiveTask tree_broadcast(Transport& transport, int tag, void* data, std::int64_t bytes,
                              int root) {
  // Counted from the root, node v has parent v without its lowest set bit, and children v + 2^k for
  // every 2^k below that bit.
  const int size = transport.size();
  const int node = (transport.rank() - root + size) % size;
  int bit = 1;
  for (; bit < size && (node & bit) == 0; bit <<= 1) {
  }
  const bool is_root = node == 0;
  const int parent = (node - bit + root + size) % size;
  std::vector<int> children;
  for (int step = bit >> 1; step > 0; step >>= 1) {
    if (node + step < size) {
      children.push_back((node + step + root) % size);
    }
  }
  const Extent all{0, bytes};
  const std::int64_t chunks = pieces_of({&all, 1}, broadcast_chunk_bytes);
  const std::shared_ptr<TransferBatch> incoming = transport.batch();
  const std::shared_ptr<TransferBatch> outgoing = transport.batch();
  const auto receive = [=](std::int64_t index) {
    const Extent chunk = piece_of(all, index, broadcast_chunk_bytes);
    if (chunk.bytes > 0) {
      incoming->recv(at(data, chunk.begin), chunk.bytes, parent, tag);
    }
  };
  const auto forward = [=, children = std::move(children)](std::int64_t index) {
    const Extent chunk = piece_of(all, index, broadcast_chunk_bytes);
    for (const int child : children) {
      outgoing->send(at(data, chunk.begin), chunk.bytes, child, tag);
    }
  };
  if (!is_root) {
    receive(0);
  }
  for (std::int64_t index = 0; is_root && index < chunks; ++index) {
    forward(index);
  }
  // `arrived` chunks are here and on their way to the children.
  return [=, arrived = is_root ? chunks : 0]() mutable {
    while (arrived < chunks && incoming->done()) {
      receive(arrived + 1);
      forward(arrived);
      ++arrived;
    }
    return arrived == chunks && outgoing->done();
  };
}

}  // namespace fourfold::comm
