// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "transport.hpp"

#include <atomic>
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

/// Counts what may have ended of one rank's transfers, so that its thread can wait for the next.
using Rings = std::atomic<std::uint32_t>;
void ring(Rings& rings);

class Mailbox;

/// One message that was posted.
struct Transfer {
  bool is_send = false;
  const void* source = nullptr;  ///< of a send
  void* target = nullptr;        ///< of a recv
  std::size_t bytes = 0;
  int sender = 0;  ///< rank within the group
  int tag = 0;
  std::atomic<int>* left = nullptr;  ///< of the transfers that were posted together: not ended
  Rings* rings = nullptr;            ///< of the rank that posted them; rung by the last
  Mailbox* mailbox = nullptr;        ///< it was posted in
};

/// Messages on their way to one rank of one group.
class Mailbox {
 public:
  /// Meets the first partner of equal sender and tag, or waits in the box for it. The one who comes
  /// second copies.
  void post(Transfer& transfer);
  /// Takes back a transfer whose owner gives up. Returns whether it was still waiting; else a
  /// partner has it, and `left` tells when it is done.
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
  Rings& rings() noexcept { return rings_; }

 protected:
  std::uint64_t changes() override { return rings_; }
  void pause(std::uint64_t seen, const std::string& what) override;

 private:
  ThreadWorld& world_;
  Rings rings_ = 0;
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
  /// Something may have changed for all but one of the ranks.
  void wake_all_but(const ThreadProgress* one);
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
  std::optional<SharedMemory> make_memory(std::size_t bytes, MemoryOffer& offer) override;
  std::optional<SharedMemory> find_memory(std::size_t bytes, const MemoryOffer& offer) override;
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
