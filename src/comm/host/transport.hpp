// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// All that a message-passing transport has to offer; the collectives are built on it once, for all
/// transports. So they give the same bits on all of them.
#pragma once

#include "progress.hpp"
#include "shared_memory.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace fourfold::comm {

/// Messages that are waited for together. May be filled again once done. Destroying a batch that is
/// not done withdraws it as far as the transport can (the rank is failing then).
class TransferBatch {
 public:
  virtual ~TransferBatch() = default;
  virtual void send(const void* data, std::size_t bytes, int peer, int tag) = 0;
  /// The matching send must have exactly `bytes`.
  virtual void recv(void* data, std::size_t bytes, int peer, int tag) = 0;
  /// Whether all messages have been sent and received. Never blocks.
  virtual bool done() = 0;
};

/// One rank's access to the messages of one group. Messages of one (sender, receiver, tag) arrive
/// in the order they were posted.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const noexcept = 0;
  virtual int size() const noexcept = 0;
  /// Tags 0 .. tags() - 1 may be used.
  virtual int tags() const noexcept = 0;
  virtual Progress& progress() noexcept = 0;
  virtual std::unique_ptr<TransferBatch> batch() = 0;
  /// A transport in the group of `members` (ranks of this one, in the new order). Collective over
  /// the members, and called in the same order by all ranks of this group.
  virtual std::unique_ptr<Transport> subgroup(std::span<const int> members,
                                              const std::string& name) = 0;

  /// A number that ranks have in common if, and only if, they may see each other's memory. Two
  /// machines have the same by mistake only.
  virtual std::int64_t memory_domain() const = 0;
  /// Memory for the group: made by rank 0, found by the others by its offer. Nothing where that
  /// cannot be had.
  virtual std::optional<SharedMemory> make_memory(std::size_t bytes, MemoryOffer& offer) = 0;
  virtual std::optional<SharedMemory> find_memory(std::size_t bytes, const MemoryOffer& offer) = 0;
  /// Whether collectives through it are quicker than messages.
  virtual bool prefers_shared_memory() const noexcept = 0;
};

}  // namespace fourfold::comm
