// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/philox.hpp>
#include <fourfold/comm/flight_recorder.hpp>

#include <algorithm>
#include <array>
#include <cstring>

namespace fourfold::comm {

namespace {

/// Ranks that are in the same communicators have made them in the same order.
std::uint64_t id_of(const std::string& name, const std::vector<int>& world_ranks,
                    std::uint64_t serial) {
  std::string key = name + '\0' + std::to_string(serial);
  for (const int rank : world_ranks) {
    key += ',' + std::to_string(rank);
  }
  return name_salt(key.data(), key.size());
}

void add_to_digest(RecordedGroup& group, const Call& call) {
  const bool same_bytes =
      call.operation == Operation::all_reduce || call.operation == Operation::broadcast;
  const std::uint64_t its_bytes = same_bytes ? call.bytes : 0;
  const std::array<std::uint64_t, 3> words{group.digest, static_cast<std::uint64_t>(call.operation),
                                           its_bytes};
  std::array<char, sizeof words> bytes;
  std::memcpy(bytes.data(), words.data(), sizeof words);
  group.digest = name_salt(bytes.data(), bytes.size());
  if (group.collectives % FlightRecorder::digest_every == 0) {
    group.digests = {group.digests[1], {group.collectives, group.digest}};
  }
}

}  // namespace

std::size_t FlightRecorder::add_group(std::string name, std::vector<int> world_ranks) {
  const std::scoped_lock lock(mutex_);
  const auto same = std::count_if(groups_.begin(), groups_.end(), [&](const RecordedGroup& group) {
    return group.name == name && group.world_ranks == world_ranks;
  });
  const std::uint64_t id = id_of(name, world_ranks, same);
  groups_.push_back({.id = id, .name = std::move(name), .world_ranks = std::move(world_ranks)});
  return groups_.size() - 1;
}

std::uint64_t FlightRecorder::enter(std::size_t group, const Call& call) {
  const std::scoped_lock lock(mutex_);
  FlightRecord record{.call = call, .communicator = group, .entered = FlightRecord::Clock::now()};
  if (is_collective(call.operation)) {
    record.sequence = ++groups_[group].collectives;
    add_to_digest(groups_[group], call);
  } else {
    const std::uint64_t peer = call.peer;
    record.sequence = ++messages_[{(group << 32U) | peer, call.operation == Operation::send}];
  }
  const std::uint64_t number = calls_++;
  if (ring_.size() < kept) {
    ring_.push_back(record);
  } else {
    ring_[number % kept] = record;
  }
  return number;
}

FlightRecord* FlightRecorder::find(std::uint64_t number) {
  return calls_ - number <= kept ? &ring_[number % kept] : nullptr;
}

void FlightRecorder::leave(std::uint64_t number) {
  const std::scoped_lock lock(mutex_);
  if (FlightRecord* const record = find(number)) {
    record->left = FlightRecord::Clock::now();
  }
}

void FlightRecorder::wait_for(std::uint64_t number) {
  const std::scoped_lock lock(mutex_);
  if (const FlightRecord* const record = find(number)) {
    waiting_ = *record;
    waiting_->entered =
        FlightRecord::Clock::now();  // of the wait: it may have been called long before
  }
}

void FlightRecorder::wait_over() {
  const std::scoped_lock lock(mutex_);
  waiting_.reset();
}

void FlightRecorder::device_waits_for(const FlightRecord& record) {
  const std::scoped_lock lock(mutex_);
  device_waiting_ = record;
}

void FlightRecorder::device_wait_over() {
  const std::scoped_lock lock(mutex_);
  device_waiting_.reset();
}

FlightRecord FlightRecorder::record_of(std::uint64_t number) const {
  const std::scoped_lock lock(mutex_);
  return ring_[number % kept];
}

void FlightRecorder::set_fault(std::string fault) {
  const std::scoped_lock lock(mutex_);
  fault_ = std::move(fault);
  fault_began_ = FlightRecord::Clock::now();
}

void FlightRecorder::set_activity(std::string activity) {
  const std::scoped_lock lock(mutex_);
  activity_ = std::move(activity);
  activity_began_ = FlightRecord::Clock::now();
}

FlightSnapshot FlightRecorder::snapshot() const {
  const std::scoped_lock lock(mutex_);
  FlightSnapshot snapshot{groups_,
                          {},
                          device_waiting_ ? device_waiting_ : waiting_,
                          activity_,
                          activity_began_,
                          fault_,
                          fault_began_};
  const std::size_t oldest = ring_.size() < kept ? 0 : calls_ % kept;
  for (std::size_t i = 0; i < ring_.size(); ++i) {
    snapshot.recent.push_back(ring_[(oldest + i) % ring_.size()]);
  }
  return snapshot;
}

double bus_factor(Operation operation, int ranks) noexcept {
  const double others = (ranks - 1.0) / ranks;
  switch (operation) {
    case Operation::all_reduce:
      return 2 * others;
    case Operation::all_gather:
    case Operation::reduce_scatter:
    case Operation::all_to_all:
      return others;
    default:
      return 1;
  }
}

}  // namespace fourfold::comm
