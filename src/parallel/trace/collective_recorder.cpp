// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/comm/flight_recorder.hpp>
#include <fourfold/parallel/collective_recorder.hpp>

#include <utility>

namespace fourfold::parallel {
namespace {

using schedule::CollectiveFacts;
using schedule::SpanKind;
using schedule::TimelineSpan;

class RecordedOperation : public comm::Work::Operation {
 public:
  RecordedOperation(comm::Work work, CollectiveRecorder& recorder, std::size_t number,
                    device::StreamRef stream)
      : work_(std::move(work)), recorder_(&recorder), number_(number), stream_(stream) {}

  void wait(device::StreamRef stream) override {
    work_.wait(stream);
    recorder_->end(number_, stream_);
  }
  bool test() override {
    const bool done = work_.test();
    if (done) {
      recorder_->end(number_, stream_);
    }
    return done;
  }
  bool mark_end(device::TimedEvent& end) override { return work_.mark_end(end); }

 private:
  comm::Work work_;
  CollectiveRecorder* recorder_;
  std::size_t number_;
  device::StreamRef stream_;  ///< it was posted on
};

}  // namespace

CollectiveFacts facts_of(const comm::Call& call, std::string communicator, int ranks) {
  return {.operation = std::string(comm::name(call.operation)),
          .communicator = std::move(communicator),
          .ranks = ranks,
          .bytes = call.bytes,
          .bus_factor = comm::bus_factor(call.operation, ranks)};
}

void CollectiveRecorder::begin_step() {
  first_ += count_;
  count_ = 0;
}

std::size_t CollectiveRecorder::begin(CollectiveFacts facts, device::StreamRef stream) {
  if (count_ == collectives_.size()) {
    collectives_.emplace_back();
  }
  Collective& collective = collectives_[count_];
  collective.facts = std::move(facts);
  collective.ended = collective.seen = collective.taken = false;
  collective.begin.record(stream);
  return first_ + count_++;
}

void CollectiveRecorder::posted(std::size_t number, comm::Work& work) {
  FOURFOLD_EXPECT(first_ <= number && number < first_ + count_);
  Collective& collective = collectives_[number - first_];
  collective.ended = work.mark_end(collective.end);
}

void CollectiveRecorder::end(std::size_t number, device::StreamRef stream) {
  if (number < first_) {
    return;  // of an earlier step, which has been read
  }
  FOURFOLD_EXPECT(number < first_ + count_);
  Collective& collective = collectives_[number - first_];
  collective.seen = true;
  if (!collective.ended) {
    collective.end.record(stream);
    collective.ended = true;
  }
}

std::vector<TimelineSpan> CollectiveRecorder::take_spans(int rank,
                                                         const device::StreamClock& clock) {
  std::vector<TimelineSpan> spans;
  for (std::size_t i = 0; i < count_; ++i) {
    Collective& collective = collectives_[i];
    const bool is_complete = collective.ended && (collective.seen || collective.end.has_happened());
    if (is_complete && !collective.taken) {
      collective.taken = true;
      spans.push_back({.rank = rank,
                       .name = str(collective.facts),
                       .begin_s = clock.time_s(collective.begin),
                       .end_s = clock.time_s(collective.end),
                       .kind = SpanKind::communication,
                       .collective = collective.facts});
    }
  }
  return spans;
}

RecordedCommunicator::RecordedCommunicator(std::unique_ptr<comm::Communicator> through)
    : owned_(std::move(through)), through_(owned_.get()) {}

comm::Work RecordedCommunicator::post(const comm::OperationCall& call) {
  using comm::Operation;
  // A single number, such as the norm, says nothing of a bandwidth.
  const bool is_number = call.operation == Operation::all_reduce && call.recv.elements() == 1;
  const bool is_noted = call.operation != Operation::broadcast &&
                        call.operation != Operation::barrier && call.operation != Operation::send;
  if (recorder_ == nullptr || is_number || !is_noted) {
    return through_->post(call);
  }
  comm::Call noted = comm::call_of(call);
  if (call.operation == Operation::all_to_all) {
    noted.bytes = call.send.bytes();  // as `fourfold bench comm` counts
  }
  const std::size_t number = recorder_->begin(facts_of(noted, name(), size()), call.stream);
  comm::Work work = through_->post(call);
  recorder_->posted(number, work);
  return comm::Work(
      std::make_unique<RecordedOperation>(std::move(work), *recorder_, number, call.stream));
}

}  // namespace fourfold::parallel
