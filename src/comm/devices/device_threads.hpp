// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The transport of ranks that are threads of one process and share one device: all of 4D on a
/// single GPU. They see each other's memory, so a rank reads what it needs where it lies, on a
/// stream of its own; no message is copied twice.
///
/// What has to be in order on the device is ordered by events; what has to be known before it can
/// be enqueued (where the others' buffers are) the ranks tell each other on the host. So wait()
/// blocks the calling thread until the others have called the operation too, but never until the
/// device has done it.
#pragma once

#include "host/collectives.hpp"
#include "host/message_communicator.hpp"
#include "host/transport.threads.hpp"

#include <fourfold/comm/communicator.hpp>
#include <fourfold/device/stream.hpp>

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace fourfold::comm {

/// What a rank shows the others of a collective operation.
struct RankSlot {
  const void* source = nullptr;
  std::vector<Extent> parts;  ///< of source, one for each rank; empty: it is one
  device::Event ready;        ///< source may be read
  /// What this rank reads in each of its steps is read, and what it makes there is made.
  std::array<device::Event, 2> stepped;
  int steps = -1;  ///< -1: not here yet; else steps that are enqueued
};

/// A collective operation: a seat for each rank.
using Round = std::vector<RankSlot>;

/// A message: shown by its sender, read by its receiver.
struct DeviceMessage {
  const void* source = nullptr;
  std::size_t bytes = 0;
  device::Event ready;
  device::Event read;
  bool is_sent = false;
  bool is_read = false;
};

/// Where the ranks of one group meet.
class DeviceRendezvous {
 public:
  DeviceRendezvous(ThreadWorld& world, std::vector<int> world_ranks)
      : world_(&world), world_ranks_(std::move(world_ranks)) {}

  std::mutex& mutex() noexcept { return mutex_; }
  /// Operation `number` of the group: the first to ask makes it. Once for each rank, with the mutex
  /// held.
  std::shared_ptr<Round> round(std::uint64_t number);
  /// The next message of this kind, as its sender or receiver counts. Call with the mutex held.
  std::shared_ptr<DeviceMessage> message(int from, int to, int tag, bool is_sender);
  /// Something was shown.
  void wake_all();
  std::size_t ranks() const noexcept { return world_ranks_.size(); }
  const std::vector<int>& world_ranks() const noexcept { return world_ranks_; }
  ThreadWorld& world() const noexcept { return *world_; }

  /// The meeting of the group that was made as number `serial` of this one and whose first member
  /// is `leader`, a rank of this one.
  std::shared_ptr<DeviceRendezvous> subgroup(std::int64_t serial, int leader,
                                             std::vector<int> world_ranks);

 private:
  ThreadWorld* world_;
  std::vector<int> world_ranks_;
  std::mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<Round>> rounds_;
  /// By sender, receiver, tag and whether the sender has named them: what the other has not yet.
  std::map<std::tuple<int, int, int, bool>, std::deque<std::shared_ptr<DeviceMessage>>> messages_;
  std::map<std::pair<std::int64_t, int>, std::shared_ptr<DeviceRendezvous>> subgroups_;
};

class DeviceThreadCommunicator : public Communicator {
 public:
  /// @param host  of the same ranks, for what is in host memory
  DeviceThreadCommunicator(std::unique_ptr<Communicator> host, Progress& progress,
                           std::shared_ptr<DeviceRendezvous> meeting);

  int rank() const noexcept override { return host_->rank(); }
  int size() const noexcept override { return host_->size(); }
  const std::string& name() const noexcept override { return host_->name(); }
  FlightRecorder* flight_recorder() noexcept override { return host_->flight_recorder(); }
  Communicator& host() noexcept override { return *host_; }

  Work post(const OperationCall& call) override;
  std::unique_ptr<Communicator> split(int color, int key, const std::string& name) override;
  std::unique_ptr<Communicator> subgroup(std::span<const int> members,
                                         const std::string& name) override;

 private:
  /// What a rank does when all have got as far, on the communicator's stream.
  using Step = std::function<void(const std::vector<RankSlot>& seats, device::StreamRef stream)>;
  std::vector<Step> steps_of(const OperationCall& call) const;
  /// A collective operation.
  Work meet(const OperationCall& call);
  Work send(const OperationCall& call);
  Work receive(const OperationCall& call);

  std::unique_ptr<Communicator> host_;
  Progress* progress_;
  std::shared_ptr<DeviceRendezvous> meeting_;
  std::size_t group_;  ///< of the flight recorder
  device::Stream stream_{device::StreamPriority::high};
  std::uint64_t rounds_ = 0;
  std::int64_t subgroups_ = 0;
};

}  // namespace fourfold::comm
