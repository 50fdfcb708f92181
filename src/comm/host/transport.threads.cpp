// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "transport.threads.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <thread>
#include <utility>

namespace fourfold::comm {
namespace {

class ThreadBatch : public TransferBatch {
 public:
  ThreadBatch(std::shared_ptr<ThreadChannel> channel, int rank, Rings& rings)
      : channel_(std::move(channel)), rank_(rank), rings_(rings) {}

  ~ThreadBatch() override {
    for (const Transfer& transfer : posted_) {
      if (transfer.mailbox->withdraw(transfer)) {
        --left_;
      }
    }
    // What is left is being copied by others: a matter of microseconds.
    while (left_.load(std::memory_order_acquire) > 0) {
      std::this_thread::yield();
    }
  }

  void send(const void* data, std::size_t bytes, int peer, int tag) override {
    post({.is_send = true, .source = data, .bytes = bytes, .sender = rank_, .tag = tag},
         (*channel_)[peer]);
  }

  void recv(void* data, std::size_t bytes, int peer, int tag) override {
    post({.target = data, .bytes = bytes, .sender = peer, .tag = tag}, (*channel_)[rank_]);
  }

  bool done() override {
    if (left_.load(std::memory_order_acquire) > 0) {
      return false;
    }
    posted_.clear();
    return true;
  }

 private:
  void post(const Transfer& message, Mailbox& mailbox) {
    ++left_;
    Transfer& posted = posted_.emplace_back(message);
    posted.left = &left_;
    posted.rings = &rings_;
    posted.mailbox = &mailbox;
    mailbox.post(posted);
  }

  std::shared_ptr<ThreadChannel> channel_;
  int rank_;
  Rings& rings_;
  std::atomic<int> left_ = 0;
  std::deque<Transfer> posted_;  // stable addresses
};

/// After this the transfer may be gone: whoever waits for the last of a batch destroys it.
void finish(const Transfer& transfer) {
  Rings& rings = *transfer.rings;
  if (transfer.left->fetch_sub(1, std::memory_order_acq_rel) == 1) {
    ring(rings);
  }
}

}  // namespace

void ring(Rings& rings) {
  ++rings;
  rings.notify_one();
}

void Mailbox::post(Transfer& transfer) {
  Queue& own = transfer.is_send ? sends_ : recvs_;
  Queue& partners = transfer.is_send ? recvs_ : sends_;
  const std::pair key(transfer.sender, transfer.tag);
  Transfer* partner = nullptr;
  {
    const std::scoped_lock lock(mutex_);
    const auto oldest = partners.lower_bound(key);
    if (oldest == partners.end() || oldest->first != key) {
      own.emplace(key, &transfer);
      return;
    }
    partner = oldest->second;
    partners.erase(oldest);
  }
  const Transfer& send = transfer.is_send ? transfer : *partner;
  const Transfer& recv = transfer.is_send ? *partner : transfer;
  const std::size_t sent = send.bytes;
  const std::size_t expected = recv.bytes;
  if (sent == expected && sent > 0) {
    std::memcpy(recv.target, send.source, sent);
  }
  finish(*partner);
  finish(transfer);
  if (sent != expected) {
    throw Error(ExitCode::internal,
                format_message("rank {} sent {} bytes where {} were expected (a bug of fourfold)",
                               transfer.sender, sent, expected));
  }
}

bool Mailbox::withdraw(const Transfer& transfer) {
  const std::scoped_lock lock(mutex_);
  Queue& own = transfer.is_send ? sends_ : recvs_;
  const auto [first, last] = own.equal_range({transfer.sender, transfer.tag});
  const auto found =
      std::find_if(first, last, [&](const auto& entry) { return entry.second == &transfer; });
  if (found == last) {
    return false;
  }
  own.erase(found);
  return true;
}

void ThreadProgress::pause(std::uint64_t seen, const std::string& what) {
  world_.check(what);
  rings_.wait(static_cast<std::uint32_t>(seen));
}

ThreadWorld::ThreadWorld(int ranks) {
  for (int rank = 0; rank < ranks; ++rank) {
    progress_.push_back(std::make_unique<ThreadProgress>(*this));
  }
}

std::shared_ptr<ThreadChannel> ThreadWorld::channel(const ThreadChannel* parent,
                                                    std::int64_t serial, int leader,
                                                    std::size_t ranks) {
  const std::scoped_lock lock(mutex_);
  auto& channel = channels_[{parent, serial, leader}];
  if (!channel) {
    channel = std::make_shared<ThreadChannel>(ranks);
  }
  return channel;
}

void ThreadWorld::fail(int rank, const std::string& reason) {
  {
    const std::scoped_lock lock(mutex_);
    if (!failed_) {
      failure_ = fmt::format("rank {} has failed: {}", rank, reason);
    }
    failed_ = true;
  }
  wake_all_but(nullptr);
}

void ThreadWorld::wake_all_but(const ThreadProgress* one) {
  for (const auto& progress : progress_) {
    if (progress.get() != one) {
      ring(progress->rings());
    }
  }
}

void ThreadWorld::check(const std::string& what) const {
  if (failed_) {
    const std::scoped_lock lock(mutex_);
    throw SystemError(ExitCode::node_fault, format_message("{} cannot end ({})", what, failure_));
  }
}

std::optional<SharedMemory> ThreadTransport::make_memory(std::size_t bytes, MemoryOffer& offer) {
  const auto block = std::make_shared<device::Buffer>(bytes, device::MemoryKind::host);
  SharedMemory memory{
      .data = {block, static_cast<std::byte*>(block->data())},
      .wake_others = [this_rank = &progress_, world = &world_] { world->wake_all_but(this_rank); }};
  const auto offered = std::make_shared<std::shared_ptr<std::byte>>(memory.data);
  offer.owner = reinterpret_cast<std::uintptr_t>(offered.get());
  memory.offered = offered;
  return memory;
}

std::optional<SharedMemory> ThreadTransport::find_memory(std::size_t /*bytes*/,
                                                         const MemoryOffer& offer) {
  const auto* offered =
      reinterpret_cast<const std::shared_ptr<std::byte>*>(static_cast<std::uintptr_t>(offer.owner));
  return SharedMemory{.data = *offered, .wake_others = [this_rank = &progress_, world = &world_] {
                        world->wake_all_but(this_rank);
                      }};
}

ThreadTransport::ThreadTransport(ThreadWorld& world, ThreadProgress& progress,
                                 std::shared_ptr<ThreadChannel> channel, int rank)
    : world_(world), progress_(progress), channel_(std::move(channel)), rank_(rank) {}

std::unique_ptr<TransferBatch> ThreadTransport::batch() {
  return std::make_unique<ThreadBatch>(channel_, rank_, progress_.rings());
}

std::unique_ptr<Transport> ThreadTransport::subgroup(std::span<const int> members,
                                                     const std::string& /*name*/) {
  const auto place = std::find(members.begin(), members.end(), rank_);
  auto channel = world_.channel(channel_.get(), subgroups_++, members.front(), members.size());
  return std::make_unique<ThreadTransport>(world_, progress_, std::move(channel),
                                           static_cast<int>(place - members.begin()));
}

}  // namespace fourfold::comm
