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

CollectiveFacts facts_of(comm::Operation operation, std::string communicator, int ranks,
                         std::int64_t bytes) {
  return {.operation = std::string(comm::name(operation)),
          .communicator = std::move(communicator),
          .ranks = ranks,
          .bytes = bytes,
          .bus_factor = comm::bus_factor(operation, ranks)};
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

template <class Post>
comm::Work RecordedCommunicator::recorded(comm::Operation operation, std::int64_t bytes,
                                          device::StreamRef stream, const Post& post) {
  if (recorder_ == nullptr) {
    return post();
  }
  const std::size_t number = recorder_->begin(facts_of(operation, name(), size(), bytes), stream);
  comm::Work work = post();
  recorder_->posted(number, work);
  return comm::Work(
      std::make_unique<RecordedOperation>(std::move(work), *recorder_, number, stream));
}

comm::Work RecordedCommunicator::all_reduce(TensorView data, comm::ReduceOp op,
                                            device::StreamRef stream, std::source_location where) {
  const auto post = [&] { return through_->all_reduce(data, op, stream, where); };
  // A single number, such as the norm, says nothing of a bandwidth.
  return data.elements() == 1 ? post()
                              : recorded(comm::Operation::all_reduce, data.bytes(), stream, post);
}

comm::Work RecordedCommunicator::all_gather(ConstTensorView send, TensorView recv,
                                            std::span<const std::int64_t> counts,
                                            device::StreamRef stream, std::source_location where) {
  return recorded(comm::Operation::all_gather, recv.bytes(), stream,
                  [&] { return through_->all_gather(send, recv, counts, stream, where); });
}

comm::Work RecordedCommunicator::reduce_scatter(ConstTensorView send, TensorView recv,
                                                std::span<const std::int64_t> counts,
                                                comm::ReduceOp op, device::StreamRef stream,
                                                std::source_location where) {
  return recorded(comm::Operation::reduce_scatter, send.bytes(), stream,
                  [&] { return through_->reduce_scatter(send, recv, counts, op, stream, where); });
}

comm::Work RecordedCommunicator::broadcast(TensorView data, int root, device::StreamRef stream,
                                           std::source_location where) {
  return through_->broadcast(data, root, stream, where);
}

comm::Work RecordedCommunicator::all_to_all(ConstTensorView send,
                                            std::span<const std::int64_t> send_counts,
                                            TensorView recv,
                                            std::span<const std::int64_t> recv_counts,
                                            device::StreamRef stream, std::source_location where) {
  return recorded(comm::Operation::all_to_all, send.bytes(), stream, [&] {
    return through_->all_to_all(send, send_counts, recv, recv_counts, stream, where);
  });
}

comm::Work RecordedCommunicator::send(ConstTensorView data, int peer, int tag,
                                      device::StreamRef stream, std::source_location where) {
  return through_->send(data, peer, tag, stream, where);
}

comm::Work RecordedCommunicator::recv(TensorView data, int peer, int tag, device::StreamRef stream,
                                      std::source_location where) {
  return recorded(comm::Operation::recv, data.bytes(), stream,
                  [&] { return through_->recv(data, peer, tag, stream, where); });
}

}  // namespace fourfold::parallel
