// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "device_threads.hpp"

#include "communicator/argument_checks.hpp"
#include "communicator/split.hpp"
#include "device_reduction.hpp"
#include "host/message_communicator.hpp"

#include <fourfold/base/box.hpp>
#include <fourfold/base/contract.hpp>
#include <fourfold/device/buffer.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace fourfold::comm {
namespace {

void copy_bytes(void* target, const void* source, std::int64_t bytes, device::StreamRef stream) {
  if (target != source) {
    device::copy(target, source, bytes, stream);
  }
}

/// The same place of all sources.
std::vector<const void*> all_at(const std::vector<RankSlot>& seats, std::int64_t bytes) {
  std::vector<const void*> inputs;
  inputs.reserve(seats.size());
  for (const RankSlot& seat : seats) {
    inputs.push_back(at(seat.source, bytes));
  }
  return inputs;
}

/// Work whose host part (knowing of each other) is `told`; then its device part is ordered by
/// events.
class Ordered : public Work::Operation {
 public:
  Ordered(Work told, device::StreamRef posted_on, std::function<void(device::StreamRef)> order)
      : told_(std::move(told)), posted_on_(posted_on), order_(std::move(order)) {}
  void wait(device::StreamRef stream) override {
    told_.wait(stream);
    order_posted();
    if (stream != posted_on_) {
      order_(stream);
    }
  }
  bool test() override {
    const bool all_told = told_.test();
    if (all_told) {
      order_posted();
    }
    return all_told;
  }

 private:
  void order_posted() {
    if (!posted_is_ordered_) {
      posted_is_ordered_ = true;
      order_(posted_on_);
    }
  }

  Work told_;
  device::StreamRef posted_on_;
  std::function<void(device::StreamRef)> order_;
  bool posted_is_ordered_ = false;
};

}  // namespace

std::shared_ptr<Round> DeviceRendezvous::round(std::uint64_t number) {
  std::shared_ptr<Round>& round = rounds_[number];
  if (!round) {
    round = std::make_shared<Round>(ranks());
  }
  std::shared_ptr<Round> result = round;
  const auto has_come = [](const RankSlot& seat) { return seat.steps >= 0; };
  if (std::ranges::count_if(*round, has_come) + 1 == std::ssize(*round)) {
    rounds_.erase(number);  // whoever takes part has it
  }
  return result;
}

std::shared_ptr<DeviceMessage> DeviceRendezvous::message(int from, int to, int tag,
                                                         bool is_sender) {
  auto& others = messages_[{from, to, tag, !is_sender}];
  auto& own = messages_[{from, to, tag, is_sender}];
  if (!others.empty()) {
    std::shared_ptr<DeviceMessage> message = others.front();
    others.pop_front();
    return message;
  }
  own.push_back(std::make_shared<DeviceMessage>());
  return own.back();
}

void DeviceRendezvous::wake_all() {
  for (const int rank : world_ranks_) {
    ring(world_->progress(rank).rings());
  }
}

std::shared_ptr<DeviceRendezvous> DeviceRendezvous::subgroup(std::int64_t serial, int leader,
                                                             std::vector<int> world_ranks) {
  const std::scoped_lock lock(mutex_);
  std::shared_ptr<DeviceRendezvous>& meeting = subgroups_[{serial, leader}];
  if (!meeting) {
    meeting = std::make_shared<DeviceRendezvous>(*world_, std::move(world_ranks));
  }
  return meeting;
}

DeviceThreadCommunicator::DeviceThreadCommunicator(std::unique_ptr<Communicator> host,
                                                   Progress& progress,
                                                   std::shared_ptr<DeviceRendezvous> meeting)
    : host_(std::move(host)),
      progress_(&progress),
      meeting_(std::move(meeting)),
      group_(progress.recorder().add_group(host_->name(), meeting_->world_ranks())) {}

Work DeviceThreadCommunicator::post(const OperationCall& call) {
  if (call.operation == Operation::barrier) {
    return host_->post(call);
  }
  expect_valid(*this, call);
  return is_collective(call.operation)       ? meet(call)
         : call.operation == Operation::send ? send(call)
                                             : receive(call);
}

Work DeviceThreadCommunicator::meet(const OperationCall& call) {
  std::vector<Step> steps = steps_of(call);
  std::shared_ptr<Round> round;
  {
    const std::scoped_lock lock(meeting_->mutex());
    round = meeting_->round(rounds_++);
    RankSlot& mine = (*round)[rank()];
    mine.source = call.send.data();
    mine.parts = extents_of(call.send_counts, call.send.dtype());
    mine.ready.record(call.stream);
    mine.steps = 0;
    meeting_->wake_all();
  }
  const std::int64_t last = std::ssize(steps) - 1;
  // Each step when all ranks have taken the one before.
  CollectiveTask task = [round, meeting = meeting_.get(), me = rank(), steps = std::move(steps),
                         on = stream_.ref(), taken = 0]() mutable {
    const std::scoped_lock lock(meeting->mutex());
    while (std::ranges::all_of(*round,
                               [taken](const RankSlot& seat) { return seat.steps >= taken; })) {
      if (taken == std::ssize(steps)) {
        return true;
      }
      for (const RankSlot& seat : *round) {
        (taken == 0 ? seat.ready : seat.stepped[taken - 1]).wait(on);
      }
      steps[taken](*round, on);
      RankSlot& mine = (*round)[me];
      mine.stepped[taken].record(on);
      mine.steps = ++taken;
      meeting->wake_all();
    }
    return false;
  };
  Work told = progress_->launch(std::move(task),
                                fmt::format("{} on '{}'", comm::name(call.operation), name()),
                                progress_->recorder().enter(group_, call_of(call)));
  return Work(std::make_unique<Ordered>(std::move(told), call.stream,
                                        [round, last](device::StreamRef waiting) {
                                          // The others have read what is here, and this rank what
                                          // it needs.
                                          for (const RankSlot& seat : *round) {
                                            seat.stepped[last].wait(waiting);
                                          }
                                        }));
}

std::vector<DeviceThreadCommunicator::Step> DeviceThreadCommunicator::steps_of(
    const OperationCall& call) const {
  const TensorView data = call.recv;
  const ReduceOp op = call.op;
  const int me = rank();
  const std::int64_t element = size_in_bytes(data.dtype());
  switch (call.operation) {
    case Operation::all_reduce: {
      const auto part_of = [data, parts = size()](std::int64_t part) {
        return even_part(data.elements(), parts, part);
      };
      const Step reduce_mine = [=](const std::vector<RankSlot>& seats, device::StreamRef on) {
        const Range part = part_of(me);
        reduce_on_device(data.dtype(), op, all_at(seats, part.begin * element),
                         at(data.data(), part.begin * element), part.count, on);
      };
      const Step copy_others = [=](const std::vector<RankSlot>& seats, device::StreamRef on) {
        for (int other = 0; other < std::ssize(seats); ++other) {
          const Range part = part_of(other);
          if (other != me) {
            copy_bytes(at(data.data(), part.begin * element),
                       at(seats[other].source, part.begin * element), part.count * element, on);
          }
        }
      };
      return {reduce_mine, copy_others};
    }
    case Operation::reduce_scatter:
      return {[=](const std::vector<RankSlot>& seats, device::StreamRef on) {
        reduce_on_device(data.dtype(), op, all_at(seats, seats[me].parts[me].begin), data.data(),
                         data.elements(), on);
      }};
    case Operation::broadcast:
      return {[=, root = call.peer](const std::vector<RankSlot>& seats, device::StreamRef on) {
        copy_bytes(data.data(), seats[root].source, bytes_of(data), on);
      }};
    default:  // a part of each, which has one or one for each
      return {[=, parts = extents_of(call.recv_counts, data.dtype())](
                  const std::vector<RankSlot>& seats, device::StreamRef on) {
        for (std::size_t i = 0; i < seats.size(); ++i) {
          const std::int64_t begin = seats[i].parts.empty() ? 0 : seats[i].parts[me].begin;
          copy_bytes(at(data.data(), parts[i].begin), at(seats[i].source, begin), parts[i].bytes,
                     on);
        }
      }};
  }
}

Work DeviceThreadCommunicator::send(const OperationCall& call) {
  std::shared_ptr<DeviceMessage> message;
  {
    const std::scoped_lock lock(meeting_->mutex());
    message = meeting_->message(rank(), call.peer, call.tag, true);
    message->source = call.send.data();
    message->bytes = call.send.bytes();
    message->ready.record(call.stream);
    message->is_sent = true;
    meeting_->wake_all();
  }
  Work told = progress_->launch(
      [message, meeting = meeting_.get()] {
        const std::scoped_lock lock(meeting->mutex());
        return message->is_read;
      },
      fmt::format("send(to {}, tag {}) on '{}'", call.peer, call.tag, name()),
      progress_->recorder().enter(group_, call_of(call)));
  return Work(std::make_unique<Ordered>(
      std::move(told), call.stream,
      [message](device::StreamRef waiting) { message->read.wait(waiting); }));
}

Work DeviceThreadCommunicator::receive(const OperationCall& call) {
  std::shared_ptr<DeviceMessage> message;
  {
    const std::scoped_lock lock(meeting_->mutex());
    message = meeting_->message(call.peer, rank(), call.tag, false);
  }
  const auto may_write = std::make_shared<device::Event>();
  may_write->record(call.stream);
  Work told = progress_->launch(
      [=, data = call.recv, meeting = meeting_.get(), on = stream_.ref()] {
        const std::scoped_lock lock(meeting->mutex());
        if (message->is_sent && !message->is_read) {
          FOURFOLD_EXPECT(message->bytes == data.bytes());
          may_write->wait(on);
          message->ready.wait(on);
          device::copy(data.data(), message->source, data.bytes(), on);
          message->read.record(on);
          message->is_read = true;
          meeting->wake_all();
        }
        return message->is_read;
      },
      fmt::format("recv(from {}, tag {}) on '{}'", call.peer, call.tag, name()),
      progress_->recorder().enter(group_, call_of(call)));
  return Work(std::make_unique<Ordered>(
      std::move(told), call.stream,
      [message](device::StreamRef waiting) { message->read.wait(waiting); }));
}

std::unique_ptr<Communicator> DeviceThreadCommunicator::split(int color, int key,
                                                              const std::string& name) {
  const std::vector<int> members = members_of_color(*host_, color, key);
  return subgroup(members, name);
}

std::unique_ptr<Communicator> DeviceThreadCommunicator::subgroup(std::span<const int> members,
                                                                 const std::string& name) {
  std::vector<int> world_ranks;
  for (const int member : members) {
    world_ranks.push_back(meeting_->world_ranks()[member]);
  }
  return std::make_unique<DeviceThreadCommunicator>(
      host_->subgroup(members, name), *progress_,
      meeting_->subgroup(subgroups_++, members.front(), std::move(world_ranks)));
}

}  // namespace fourfold::comm
