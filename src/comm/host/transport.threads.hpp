// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "transport.hpp"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace fourfold::comm {

/// Wakes one rank's thread when a transfer of it may have ended.
class Notifier {
 public:
  void ring();
  std::uint64_t rings() const;
  /// Until rings() differs from `seen`.
  void wait(std::uint64_t seen);

 private:
  mutable std::mutex mutex_;
  std::condition_variable rung_;
  std::uint64_t rings_ = 0;
};

/// The transfers of one batch that have not ended.
struct Countdown {
  std::atomic<int> left = 0;
  Notifier* notifier = nullptr;  ///< of the rank that posted them; rung by the last

  /// After this the countdown may be gone: whoever waits for zero destroys it.
  void finish_one();
};

class Mailbox;

/// One message that was posted.
struct Transfer {
  bool is_send = false;
  const void* source = nullptr;  ///< of a send
  void* target = nullptr;        ///< of a recv
  std::size_t bytes = 0;
  int sender = 0;  ///< rank within the group
  int tag = 0;
  Countdown* countdown = nullptr;
  Mailbox* mailbox = nullptr;  ///< it was posted in
};

/// Messages on their way to one rank of one group.
class Mailbox {
 public:
  /// Meets the first partner of equal sender and tag, or waits in the box for it. The one who comes
  /// second copies.
  void post(Transfer& transfer);
  /// Takes back a transfer whose owner gives up. Returns whether it was still waiting; else a
  /// partner has it, and the countdown tells when it is done.
  bool withdraw(const Transfer& transfer);

 private:
  /// By sender and tag; equal ones in the order of posting.
  using Queue = std::multimap<std::pair<int, int>, Transfer*>;
  std::mutex mutex_;
  Queue sends_;
  Queue recvs_;
};

class ThreadWorld;

/// Everything in flight of one rank that is a thread.
class ThreadProgress : public Progress {
 public:
  explicit ThreadProgress(ThreadWorld& world) : world_(world) {}
  Notifier& notifier() noexcept { return notifier_; }

 protected:
  std::uint64_t changes() override { return notifier_.rings(); }
  void pause(std::uint64_t seen, const std::string& what) override;

 private:
  ThreadWorld& world_;
  Notifier notifier_;
};

/// Of one group, by rank.
using ThreadChannel = std::vector<Mailbox>;

/// What the ranks of one run_ranks() share.
class ThreadWorld {
 public:
  explicit ThreadWorld(int ranks);

  ThreadProgress& progress(int rank) { return *progress_[rank]; }
  /// The channel of the group that was made as number `serial` on `parent` and whose first member
  /// is `leader`: the first to ask makes it.
  std::shared_ptr<ThreadChannel> channel(const ThreadChannel* parent, std::int64_t serial,
                                         int leader, std::size_t ranks);
  /// Ends all waiting: `rank` will not take part any more.
  void fail(int rank, const std::string& reason);
  /// @throws SystemError naming `what` when a rank has failed
  void check(const std::string& what) const;

 private:
  std::vector<std::unique_ptr<ThreadProgress>> progress_;
  mutable std::mutex mutex_;
  std::map<std::tuple<const ThreadChannel*, std::int64_t, int>, std::shared_ptr<ThreadChannel>>
      channels_;
  std::atomic<bool> failed_ = false;
  std::string failure_;
};

/// Memory that the ranks of a group share, and how they are woken.
struct ThreadBlock {
  explicit ThreadBlock(std::size_t bytes) : memory(bytes, device::MemoryKind::host) {}
  device::Buffer memory;
  std::mutex mutex;  ///< of the bells, while ranks join
  std::vector<Notifier*> bells;
};

class ThreadTransport : public Transport {
 public:
  ThreadTransport(ThreadWorld& world, ThreadProgress& progress,
                  std::shared_ptr<ThreadChannel> channel, int rank);

  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return static_cast<int>(channel_->size()); }
  int tags() const noexcept override { return 1 << 24; }
  Progress& progress() noexcept override { return progress_; }
  std::unique_ptr<TransferBatch> batch() override;
  std::unique_ptr<Transport> subgroup(std::span<const int> members,
                                      const std::string& name) override;
  std::int64_t memory_domain() const override { return 0; }
  std::unique_ptr<SharedMemory> make_memory(std::size_t bytes, MemoryOffer& offer) override;
  std::unique_ptr<SharedMemory> find_memory(std::size_t bytes, const MemoryOffer& offer) override;
  /// Messages are copied straight from buffer to buffer.
  bool prefers_shared_memory() const noexcept override { return false; }

 private:
  ThreadWorld& world_;
  ThreadProgress& progress_;
  std::shared_ptr<ThreadChannel> channel_;
  int rank_;
  std::int64_t subgroups_ = 0;
};

}  // namespace fourfold::comm
