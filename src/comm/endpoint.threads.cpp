// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "endpoint.threads.hpp"

#include <fourfold/base/error.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <thread>
#include <utility>

namespace fourfold::comm {
namespace {

/// Marks a transfer as ended. It may be gone as soon as its owner sees that, so the bell is taken
/// before.
void finish(Transfer& transfer) {
  Bell* const bell = transfer.bell;
  transfer.state.store(Transfer::State::done, std::memory_order_release);
  bell->ring();
}

class ThreadBatch : public TransferBatch {
 public:
  ThreadBatch(std::shared_ptr<ThreadChannel> channel, int rank, Bell& bell)
      : channel_(std::move(channel)), rank_(rank), bell_(bell) {}

  ~ThreadBatch() override {
    for (Posted& posted : posted_) {
      posted.mailbox->withdraw(posted.transfer);
    }
  }

  void send(const void* data, std::size_t bytes, int peer, int tag) override {
    Posted& posted = next(bytes, tag, rank_, channel_->mailboxes[peer]);
    posted.transfer.is_send = true;
    posted.transfer.source = data;
    posted.mailbox->post(posted.transfer);
  }

  void recv(void* data, std::size_t bytes, int peer, int tag) override {
    Posted& posted = next(bytes, tag, peer, channel_->mailboxes[rank_]);
    posted.transfer.target = data;
    posted.mailbox->post(posted.transfer);
  }

  bool done() override {
    const bool all = std::all_of(posted_.begin(), posted_.end(), [](const Posted& posted) {
      return posted.transfer.state.load(std::memory_order_acquire) == Transfer::State::done;
    });
    if (all) {
      posted_.clear();
    }
    return all;
  }

 private:
  struct Posted {
    Transfer transfer;
    Mailbox* mailbox = nullptr;
  };

  Posted& next(std::size_t bytes, int tag, int sender, Mailbox& mailbox) {
    Posted& posted = posted_.emplace_back();
    posted.transfer.bytes = bytes;
    posted.transfer.tag = tag;
    posted.transfer.sender = sender;
    posted.transfer.bell = &bell_;
    posted.mailbox = &mailbox;
    return posted;
  }

  std::shared_ptr<ThreadChannel> channel_;
  int rank_;
  Bell& bell_;
  std::deque<Posted> posted_;  // stable addresses
};

}  // namespace

void Bell::ring() {
  {
    const std::scoped_lock lock(mutex_);
    ++rings_;
  }
  rung_.notify_one();
}

std::uint64_t Bell::rings() const {
  const std::scoped_lock lock(mutex_);
  return rings_;
}

void Bell::wait(std::uint64_t seen) {
  std::unique_lock lock(mutex_);
  rung_.wait(lock, [this, seen] { return rings_ != seen; });
}

void Mailbox::post(Transfer& transfer) {
  Queue& own = transfer.is_send ? sends_ : recvs_;
  Queue& partners = transfer.is_send ? recvs_ : sends_;
  Transfer* partner = nullptr;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = std::find_if(partners.begin(), partners.end(), [&](const Transfer* other) {
      return other->sender == transfer.sender && other->tag == transfer.tag;
    });
    if (found == partners.end()) {
      own.push_back(&transfer);
      return;
    }
    partner = *found;
    partners.erase(found);
    partner->state = Transfer::State::copying;
  }
  const Transfer& send = transfer.is_send ? transfer : *partner;
  const Transfer& recv = transfer.is_send ? *partner : transfer;
  const bool fits = send.bytes == recv.bytes;
  if (fits && send.bytes > 0) {
    std::memcpy(recv.target, send.source, send.bytes);
  }
  const std::size_t sent = send.bytes;
  const std::size_t expected = recv.bytes;
  transfer.state = Transfer::State::done;
  finish(*partner);
  if (!fits) {
    throw Error(ExitCode::internal,
                fmt::format("rank {} sent {} bytes where {} were expected (a bug of fourfold)",
                            transfer.sender, sent, expected));
  }
}

void Mailbox::withdraw(Transfer& transfer) {
  {
    const std::scoped_lock lock(mutex_);
    sends_.remove(&transfer);
    recvs_.remove(&transfer);
  }
  // Whoever is copying holds no lock; it is a matter of microseconds.
  while (transfer.state.load(std::memory_order_acquire) == Transfer::State::copying) {
    std::this_thread::yield();
  }
}

void ThreadProgress::pause(std::uint64_t seen, const std::string& what) {
  world_.check(what);
  bell_.wait(seen);
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
    progress->bell().ring();
  }
}

void ThreadWorld::check(const std::string& what) const {
  if (failed_) {
    const std::scoped_lock lock(mutex_);
    throw SystemError(ExitCode::node_fault, fmt::format("{} cannot end ({})", what, failure_));
  }
}

ThreadEndpoint::ThreadEndpoint(ThreadWorld& world, ThreadProgress& progress,
                               std::shared_ptr<ThreadChannel> channel, int rank)
    : world_(world), progress_(progress), channel_(std::move(channel)), rank_(rank) {}

std::unique_ptr<TransferBatch> ThreadEndpoint::batch() {
  return std::make_unique<ThreadBatch>(channel_, rank_, progress_.bell());
}

std::unique_ptr<Endpoint> ThreadEndpoint::subgroup(std::span<const int> members,
                                                   const std::string& /*name*/) {
  const auto place = std::find(members.begin(), members.end(), rank_);
  auto channel = world_.channel(channel_.get(), subgroups_++, members.front(), members.size());
  return std::make_unique<ThreadEndpoint>(world_, progress_, std::move(channel),
                                          static_cast<int>(place - members.begin()));
}

}  // namespace fourfold::comm
