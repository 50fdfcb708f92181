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
  ThreadBatch(std::shared_ptr<ThreadChannel> channel, int rank, Notifier& notifier)
      : channel_(std::move(channel)), rank_(rank) {
    countdown_.notifier = &notifier;
  }

  ~ThreadBatch() override {
    for (const Transfer& transfer : posted_) {
      if (transfer.mailbox->withdraw(transfer)) {
        --countdown_.left;
      }
    }
    // What is left is being copied by others: a matter of microseconds.
    while (countdown_.left.load(std::memory_order_acquire) > 0) {
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
    if (countdown_.left.load(std::memory_order_acquire) > 0) {
      return false;
    }
    posted_.clear();
    return true;
  }

 private:
  void post(const Transfer& message, Mailbox& mailbox) {
    ++countdown_.left;
    Transfer& posted = posted_.emplace_back(message);
    posted.countdown = &countdown_;
    posted.mailbox = &mailbox;
    mailbox.post(posted);
  }

  std::shared_ptr<ThreadChannel> channel_;
  int rank_;
  Countdown countdown_;
  std::deque<Transfer> posted_;  // stable addresses
};

}  // namespace

void Notifier::ring() {
  {
    const std::scoped_lock lock(mutex_);
    ++rings_;
  }
  rung_.notify_one();
}

std::uint64_t Notifier::rings() const {
  const std::scoped_lock lock(mutex_);
  return rings_;
}

void Notifier::wait(std::uint64_t seen) {
  std::unique_lock lock(mutex_);
  rung_.wait(lock, [this, seen] { return rings_ != seen; });
}

void Countdown::finish_one() {
  Notifier* const ring_at_last = notifier;
  if (left.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    ring_at_last->ring();
  }
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
  partner->countdown->finish_one();
  transfer.countdown->finish_one();
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
  notifier_.wait(seen);
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
  for (const auto& progress : progress_) {
    progress->notifier().ring();
  }
}

void ThreadWorld::check(const std::string& what) const {
  if (failed_) {
    const std::scoped_lock lock(mutex_);
    throw SystemError(ExitCode::node_fault, format_message("{} cannot end ({})", what, failure_));
  }
}

namespace {

class ThreadMemory : public SharedMemory {
 public:
  ThreadMemory(std::shared_ptr<ThreadBlock> block, Notifier& own)
      : block_(std::move(block)), own_(own) {
    const std::scoped_lock lock(block_->mutex);
    block_->bells.push_back(&own);
  }
  std::byte* data() const noexcept override {
    return static_cast<std::byte*>(block_->memory.data());
  }
  /// All have joined by then, so the list is at rest.
  void wake_others() override {
    for (Notifier* notifier : block_->bells) {
      if (notifier != &own_) {
        notifier->ring();
      }
    }
  }
  void close_offer() override { offered_.reset(); }
  /// What the offer points to.
  std::shared_ptr<ThreadBlock>* offered() {
    offered_ = std::make_unique<std::shared_ptr<ThreadBlock>>(block_);
    return offered_.get();
  }

 private:
  std::shared_ptr<ThreadBlock> block_;
  Notifier& own_;
  std::unique_ptr<std::shared_ptr<ThreadBlock>> offered_;
};

}  // namespace

std::unique_ptr<SharedMemory> ThreadTransport::make_memory(std::size_t bytes, MemoryOffer& offer) {
  auto memory =
      std::make_unique<ThreadMemory>(std::make_shared<ThreadBlock>(bytes), progress_.notifier());
  offer.owner = reinterpret_cast<std::uintptr_t>(memory->offered());
  return memory;
}

std::unique_ptr<SharedMemory> ThreadTransport::find_memory(std::size_t /*bytes*/,
                                                           const MemoryOffer& offer) {
  const auto* offered = reinterpret_cast<const std::shared_ptr<ThreadBlock>*>(
      static_cast<std::uintptr_t>(offer.owner));
  return std::make_unique<ThreadMemory>(*offered, progress_.notifier());
}

ThreadTransport::ThreadTransport(ThreadWorld& world, ThreadProgress& progress,
                                 std::shared_ptr<ThreadChannel> channel, int rank)
    : world_(world), progress_(progress), channel_(std::move(channel)), rank_(rank) {}

std::unique_ptr<TransferBatch> ThreadTransport::batch() {
  return std::make_unique<ThreadBatch>(channel_, rank_, progress_.notifier());
}

std::unique_ptr<Transport> ThreadTransport::subgroup(std::span<const int> members,
                                                     const std::string& /*name*/) {
  const auto place = std::find(members.begin(), members.end(), rank_);
  auto channel = world_.channel(channel_.get(), subgroups_++, members.front(), members.size());
  return std::make_unique<ThreadTransport>(world_, progress_, std::move(channel),
                                           static_cast<int>(place - members.begin()));
}

}  // namespace fourfold::comm
