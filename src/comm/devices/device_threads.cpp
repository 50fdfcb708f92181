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
  if (++round->came == ranks()) {
    rounds_.erase(number);  // whoever takes part has it
  }
  return result;
}

std::shared_ptr<DeviceMessage> DeviceRendezvous::message(int from, int to, int tag,
                                                         bool is_sender) {
  Line& line = lines_[{from, to, tag}];
  auto& others = is_sender ? line.awaited : line.sent;
  auto& own = is_sender ? line.sent : line.awaited;
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
    world_->progress(rank).notifier().ring();
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

Work DeviceThreadCommunicator::meet(const std::string& what, const Call& call, const void* source,
                                    std::vector<std::int64_t> offset_bytes, std::vector<Step> steps,
                                    device::StreamRef stream) {
  std::shared_ptr<Round> round;
  {
    const std::scoped_lock lock(meeting_->mutex());
    round = meeting_->round(rounds_++);
    RankSlot& mine = round->seats[rank()];
    mine.source = source;
    mine.offset_bytes = std::move(offset_bytes);
    mine.ready.record(stream);
    mine.steps = 0;
    meeting_->wake_all();
  }
  const std::int64_t last = std::ssize(steps) - 1;
  // Each step when all ranks have taken the one before.
  CollectiveTask task = [round, meeting = meeting_.get(), me = rank(), steps = std::move(steps),
                         on = stream_.ref(), taken = 0]() mutable {
    const std::scoped_lock lock(meeting->mutex());
    while (std::ranges::all_of(round->seats,
                               [taken](const RankSlot& seat) { return seat.steps >= taken; })) {
      if (taken == std::ssize(steps)) {
        return true;
      }
      for (const RankSlot& seat : round->seats) {
        (taken == 0 ? seat.ready : seat.stepped[taken - 1]).wait(on);
      }
      steps[taken](round->seats, on);
      RankSlot& mine = round->seats[me];
      mine.stepped[taken].record(on);
      mine.steps = ++taken;
      meeting->wake_all();
    }
    return false;
  };
  Work told = progress_->launch(std::move(task), fmt::format("{} on '{}'", what, name()),
                                progress_->recorder().enter(group_, call));
  return Work(
      std::make_unique<Ordered>(std::move(told), stream, [round, last](device::StreamRef waiting) {
        // The others have read what is here, and this rank what it needs.
        for (const RankSlot& seat : round->seats) {
          seat.stepped[last].wait(waiting);
        }
      }));
}

Work DeviceThreadCommunicator::all_reduce(TensorView data, ReduceOp op, device::StreamRef stream,
                                          std::source_location where) {
  expect_all_reduce(data, op);
  const auto part_of = [data, parts = size()](std::int64_t part) {
    return even_part(data.elements(), parts, part);
  };
  const std::int64_t element = size_in_bytes(data.dtype());
  const Step reduce_mine = [=, me = rank()](const std::vector<RankSlot>& seats,
                                            device::StreamRef on) {
    const Range part = part_of(me);
    reduce_on_device(data.dtype(), op, all_at(seats, part.begin * element),
                     at(data.data(), part.begin * element), part.count, on);
  };
  const Step copy_others = [=, me = rank()](const std::vector<RankSlot>& seats,
                                            device::StreamRef on) {
    for (int other = 0; other < std::ssize(seats); ++other) {
      const Range part = part_of(other);
      if (other != me) {
        copy_bytes(at(data.data(), part.begin * element),
                   at(seats[other].source, part.begin * element), part.count * element, on);
      }
    }
  };
  return meet("all_reduce", {Operation::all_reduce, bytes_of(data), -1, where}, data.data(), {},
              {reduce_mine, copy_others}, stream);
}

Work DeviceThreadCommunicator::all_gather(ConstTensorView send, TensorView recv,
                                          std::span<const std::int64_t> counts,
                                          device::StreamRef stream, std::source_location where) {
  expect_all_gather(*this, send, recv, counts);
  const std::int64_t element = size_in_bytes(recv.dtype());
  const Step gather = [=, begins = begins_of(counts, recv.dtype()),
                       parts = std::vector(counts.begin(), counts.end())](
                          const std::vector<RankSlot>& seats, device::StreamRef on) {
    for (std::size_t i = 0; i < seats.size(); ++i) {
      copy_bytes(at(recv.data(), begins[i]), seats[i].source, parts[i] * element, on);
    }
  };
  return meet("all_gather", {Operation::all_gather, bytes_of(recv), -1, where}, send.data(), {},
              {gather}, stream);
}

Work DeviceThreadCommunicator::reduce_scatter(ConstTensorView send, TensorView recv,
                                              std::span<const std::int64_t> counts, ReduceOp op,
                                              device::StreamRef stream,
                                              std::source_location where) {
  expect_reduce_scatter(*this, send, recv, counts, op);
  const std::int64_t begin = begins_of(counts, send.dtype())[rank()];
  const Step reduce_mine = [=](const std::vector<RankSlot>& seats, device::StreamRef on) {
    reduce_on_device(recv.dtype(), op, all_at(seats, begin), recv.data(), recv.elements(), on);
  };
  return meet("reduce_scatter", {Operation::reduce_scatter, bytes_of(send), -1, where}, send.data(),
              {}, {reduce_mine}, stream);
}

Work DeviceThreadCommunicator::broadcast(TensorView data, int root, device::StreamRef stream,
                                         std::source_location where) {
  expect_broadcast(*this, root);
  const Step copy_root = [=](const std::vector<RankSlot>& seats, device::StreamRef on) {
    copy_bytes(data.data(), seats[root].source, bytes_of(data), on);
  };
  return meet("broadcast", {Operation::broadcast, bytes_of(data), root, where}, data.data(), {},
              {copy_root}, stream);
}

Work DeviceThreadCommunicator::all_to_all(ConstTensorView send,
                                          std::span<const std::int64_t> send_counts,
                                          TensorView recv,
                                          std::span<const std::int64_t> recv_counts,
                                          device::StreamRef stream, std::source_location where) {
  expect_all_to_all(*this, send, send_counts, recv, recv_counts);
  const std::int64_t element = size_in_bytes(recv.dtype());
  const Step fetch = [=, me = rank(), begins = begins_of(recv_counts, recv.dtype()),
                      parts = std::vector(recv_counts.begin(), recv_counts.end())](
                         const std::vector<RankSlot>& seats, device::StreamRef on) {
    for (std::size_t i = 0; i < seats.size(); ++i) {
      copy_bytes(at(recv.data(), begins[i]), at(seats[i].source, seats[i].offset_bytes[me]),
                 parts[i] * element, on);
    }
  };
  return meet("all_to_all",
              {Operation::all_to_all, std::max(bytes_of(send), bytes_of(recv)), -1, where},
              send.data(), begins_of(send_counts, send.dtype()), {fetch}, stream);
}

Work DeviceThreadCommunicator::send(ConstTensorView data, int peer, int tag,
                                    device::StreamRef stream, std::source_location where) {
  expect_message(*this, peer);
  std::shared_ptr<DeviceMessage> message;
  {
    const std::scoped_lock lock(meeting_->mutex());
    message = meeting_->message(rank(), peer, tag, true);
    message->source = data.data();
    message->bytes = data.bytes();
    message->ready.record(stream);
    message->is_sent = true;
    meeting_->wake_all();
  }
  Work told = progress_->launch(
      [message, meeting = meeting_.get()] {
        const std::scoped_lock lock(meeting->mutex());
        return message->is_read;
      },
      fmt::format("send(to {}, tag {}) on '{}'", peer, tag, name()),
      progress_->recorder().enter(group_, {Operation::send, bytes_of(data), peer, where}));
  return Work(std::make_unique<Ordered>(
      std::move(told), stream,
      [message](device::StreamRef waiting) { message->read.wait(waiting); }));
}

Work DeviceThreadCommunicator::recv(TensorView data, int peer, int tag, device::StreamRef stream,
                                    std::source_location where) {
  expect_message(*this, peer);
  std::shared_ptr<DeviceMessage> message;
  {
    const std::scoped_lock lock(meeting_->mutex());
    message = meeting_->message(peer, rank(), tag, false);
  }
  const auto may_write = std::make_shared<device::Event>();
  may_write->record(stream);
  Work told = progress_->launch(
      [=, meeting = meeting_.get(), on = stream_.ref()] {
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
      fmt::format("recv(from {}, tag {}) on '{}'", peer, tag, name()),
      progress_->recorder().enter(group_, {Operation::recv, bytes_of(data), peer, where}));
  return Work(std::make_unique<Ordered>(
      std::move(told), stream,
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
