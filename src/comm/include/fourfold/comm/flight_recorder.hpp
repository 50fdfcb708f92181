// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What a rank has done with its communicators lately, and what it waits for now: written by the
/// rank, read by a thread that watches it (watchdog.hpp).
#pragma once

#include <fourfold/comm/communicator.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

namespace fourfold::comm {

/// An operation as it is called.
struct Call {
  Operation operation = Operation::barrier;
  std::int64_t bytes = 0;  ///< of the larger buffer
  int peer = -1;           ///< rank in the communicator: of send, recv, broadcast
  std::source_location where = {};
};
inline Call call_of(const OperationCall& call) {
  return {call.operation, call.bytes(), call.peer, call.where};
}

/// An operation that was called.
struct FlightRecord {
  using Clock = std::chrono::steady_clock;

  Call call;
  std::size_t communicator = 0;  ///< index into FlightSnapshot::communicators
  /// From 1. Of a collective: the same on all ranks of its communicator. Of send and recv: of those
  /// of the same direction with that peer.
  std::uint64_t sequence = 0;
  Clock::time_point entered;
  std::optional<Clock::time_point> left = {};
};

/// What the collectives of a communicator were, up to one of them: operations, and bytes where all
/// ranks have the same. Two ranks that differ have not called the same.
struct CallsDigest {
  std::uint64_t calls = 0;  ///< a multiple of FlightRecorder::digest_every; 0: none yet
  std::uint64_t digest = 0;
};

/// A communicator that a rank is in.
struct RecordedGroup {
  /// The same on all its ranks, and no other's.
  std::uint64_t id = 0;
  std::string name;
  std::vector<int> world_ranks;
  std::uint64_t collectives = 0;  ///< called so far
  std::uint64_t digest = 0;       ///< of them
  /// The last two: ranks that look at different moments have one in common.
  std::array<CallsDigest, 2> digests = {};
};

struct FlightSnapshot {
  std::vector<RecordedGroup> groups;
  std::vector<FlightRecord> recent;     ///< oldest first
  std::optional<FlightRecord> waiting;  ///< what the rank, or its device, blocks in
  std::string activity;                 ///< what it is about besides
  FlightRecord::Clock::time_point activity_began;
  std::string fault;  ///< why its communication has failed; empty: it has not
  FlightRecord::Clock::time_point fault_began;
};

/// The last operations of one rank, on all its communicators. One thread writes (of its device,
/// another), others may take snapshots. Writing takes tens of nanoseconds and no memory.
class FlightRecorder {
 public:
  static constexpr std::size_t kept = 64;
  static constexpr std::uint64_t digest_every = 32;

  FlightRecorder() { ring_.reserve(kept); }
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;

  /// @return the index of the communicator
  std::size_t add_group(std::string name, std::vector<int> world_ranks);
  /// @return the number of the call, for what follows
  std::uint64_t enter(std::size_t group, const Call& call);
  void leave(std::uint64_t number);
  /// This rank blocks in a call from here on, or no longer.
  void wait_for(std::uint64_t number);
  void wait_over();
  /// The same of its device, on which calls are executed long after they were made. It decides
  /// where both wait: the rank may well wait for its device.
  void device_waits_for(const FlightRecord& record);
  void device_wait_over();
  /// @pre `number` is among the last `kept`
  FlightRecord record_of(std::uint64_t number) const;
  /// The rank's communication has failed, and does not say which peer failed it.
  void set_fault(std::string fault);
  /// What the rank is about: "step 12", "saving step 500".
  void set_activity(std::string activity);

  FlightSnapshot snapshot() const;

 private:
  FlightRecord* find(std::uint64_t number);

  mutable std::mutex mutex_;
  std::vector<RecordedGroup> groups_;
  std::map<std::pair<std::uint64_t, bool>, std::uint64_t> messages_;  ///< by group, peer; is_send
  std::vector<FlightRecord> ring_;
  std::uint64_t calls_ = 0;
  std::optional<FlightRecord> waiting_;
  std::optional<FlightRecord> device_waiting_;
  std::string fault_;
  FlightRecord::Clock::time_point fault_began_;
  std::string activity_ = "starting";
  FlightRecord::Clock::time_point activity_began_ = FlightRecord::Clock::now();
};

/// Bus bandwidth is algorithm bandwidth (Call::bytes over time) times this: what each rank's link
/// has to carry whatever the algorithm, as nccl-tests define it. 2(n-1)/n for all_reduce, (n-1)/n
/// for all_gather, reduce_scatter and all_to_all, else 1. @pre ranks > 0
double bus_factor(Operation operation, int ranks) noexcept;

}  // namespace fourfold::comm
