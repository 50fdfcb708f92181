// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/comm/flight_recorder.hpp>
#include <fourfold/device/timed_event.hpp>
#include <fourfold/schedule/timeline.hpp>

#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace fourfold::parallel {

/// Of a call, as the flight recorder has it, what a timeline shows. @pre ranks > 0
schedule::CollectiveFacts facts_of(const comm::Call& call, std::string communicator, int ranks);

/// When collectives of one rank were under way, and messages that it received: each from when it is
/// posted, on its stream, until it is complete; on a host transport until somebody looks after it
/// and sees that it is.
class CollectiveRecorder {
 public:
  /// Forgets what was recorded.
  void begin_step();
  /// @return a number for end()
  std::size_t begin(schedule::CollectiveFacts collective, device::StreamRef stream);
  /// Right after its posting: its end, if the device knows it. @pre of this step
  void posted(std::size_t number, comm::Work& work);
  /// It was seen to be complete, or a stream waits for it. The first call for a number counts; of
  /// earlier steps none does. @pre begin() gave it
  void end(std::size_t number, device::StreamRef stream);

  /// Those that are complete and were not taken before, in the order they were posted. What is
  /// under way and no stream waits for yet is left for later.
  /// @pre recorded since `clock` was made
  std::vector<schedule::TimelineSpan> take_spans(int rank, const device::StreamClock& clock);

 private:
  struct Collective {
    schedule::CollectiveFacts facts;
    device::TimedEvent begin;
    device::TimedEvent end;
    bool ended = false;  ///< the end is recorded
    bool seen = false;   ///< or a stream waits for it
    bool taken = false;
  };
  std::deque<Collective> collectives_;  ///< those of earlier steps are used again
  std::size_t first_ = 0;               ///< number of this step's first
  std::size_t count_ = 0;
};

/// Passes every call on to a communicator, and notes all_reduce, all_gather, reduce_scatter and
/// all_to_all while there is a recorder, and messages where they arrive (recv). Groups that are
/// split from it are not recorded.
class RecordedCommunicator : public comm::Communicator {
 public:
  explicit RecordedCommunicator(std::unique_ptr<comm::Communicator> through);
  /// @param through  borrowed
  explicit RecordedCommunicator(comm::Communicator& through) : through_(&through) {}

  /// @param recorder  borrowed until the next call; nullptr: no more
  void record_into(CollectiveRecorder* recorder) noexcept { recorder_ = recorder; }

  comm::Communicator& host() noexcept override { return through_->host(); }
  int rank() const noexcept override { return through_->rank(); }
  int size() const noexcept override { return through_->size(); }
  const std::string& name() const noexcept override { return through_->name(); }
  void use(comm::Algorithm algorithm) override { through_->use(algorithm); }
  comm::FlightRecorder* flight_recorder() noexcept override { return through_->flight_recorder(); }
  comm::Algorithm algorithm() const noexcept override { return through_->algorithm(); }
  bool sums_in_rank_order() const noexcept override { return through_->sums_in_rank_order(); }
  void expect_messages(std::span<const comm::MessageRoute> routes) override {
    through_->expect_messages(routes);
  }
  std::unique_ptr<comm::RegisteredMemory> register_memory(void* data, std::size_t bytes) override {
    return through_->register_memory(data, bytes);
  }
  bool registers_memory() const noexcept override { return through_->registers_memory(); }
  comm::Work post(const comm::OperationCall& call) override;
  std::unique_ptr<Communicator> split(int color, int key, const std::string& name) override {
    return through_->split(color, key, name);
  }
  std::unique_ptr<Communicator> subgroup(std::span<const int> members,
                                         const std::string& name) override {
    return through_->subgroup(members, name);
  }

 private:
  std::unique_ptr<comm::Communicator> owned_;  ///< unless it is borrowed
  comm::Communicator* through_;
  CollectiveRecorder* recorder_ = nullptr;
};

}  // namespace fourfold::parallel
