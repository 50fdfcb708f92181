// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "message_communicator.hpp"

#include "collectives.hpp"
#include "communicator/argument_checks.hpp"
#include "communicator/split.hpp"
#include "reduction.hpp"
#include "ring_tree_reduction.hpp"
#include "shared_window.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace fourfold::comm {
namespace {

/// Tags above the user's half, as offsets: the check in front, then the operation itself.
constexpr int check_tag = 0;
constexpr int task_tag = 1;

bool has_nothing_to_do() {
  return true;
}

/// The operation and every argument that must agree on all ranks; of a message, on both.
std::string text_of(const OperationCall& call) {
  switch (call.operation) {
    case Operation::all_reduce:
      return fmt::format("all_reduce({}, {} x {})", name(call.op), name(call.recv.dtype()),
                         call.recv.elements());
    case Operation::all_gather:
      return fmt::format("all_gather({} x {})", name(call.recv.dtype()),
                         fmt::join(call.recv_counts, ","));
    case Operation::reduce_scatter:
      return fmt::format("reduce_scatter({}, {} x {})", name(call.op), name(call.send.dtype()),
                         fmt::join(call.send_counts, ","));
    case Operation::broadcast:
      return fmt::format("broadcast(from {}, {} x {})", call.peer, name(call.recv.dtype()),
                         call.recv.elements());
    case Operation::all_to_all:
      return fmt::format("all_to_all({})", name(call.send.dtype()));
    case Operation::barrier:
      return "barrier()";
    case Operation::send:
    case Operation::recv:
      break;
  }
  return fmt::format("{}({} {}, tag {}, {} bytes)", name(call.operation),
                     call.operation == Operation::send ? "to" : "from", call.peer, call.tag,
                     call.bytes());
}

ReductionPlan scatter_plan(const OperationCall& call, std::span<const Extent> parts, Order order) {
  return {.send = at(call.send.data(), 0),
          .parts = {parts.begin(), parts.end()},
          .result = at(call.recv.data(), 0),
          .dtype = call.send.dtype(),
          .op = call.op,
          .order = order};
}

}  // namespace

MessageCommunicator::MessageCommunicator(std::unique_ptr<Transport> transport, std::string name,
                                         std::vector<int> world_ranks, Algorithm wanted)
    : transport_(std::move(transport)),
      name_(std::move(name)),
      world_ranks_(std::move(world_ranks)),
      group_(transport_->progress().recorder().add_group(name_, world_ranks_)) {
  choose(wanted);
}

void MessageCommunicator::choose(Algorithm algorithm) {
  wanted_ = algorithm;
  const bool shares = algorithm == Algorithm::shared ||
                      (algorithm == Algorithm::automatic && transport_->prefers_shared_memory());
  if (!shares || size() == 1) {
    window_.reset();
    return;
  }
  if (!window_) {
    window_ = open_window(*transport_, *this);
  }
  if (!window_ && algorithm == Algorithm::shared) {
    throw UserError(ExitCode::config,
                    format_message("the {} ranks of '{}' cannot share memory (they are on several "
                                   "machines, or the system does not allow it); use \"auto\" or "
                                   "\"direct\"",
                                   size(), name_));
  }
}

std::string MessageCommunicator::described(const OperationCall& call) const {
  return fmt::format("{} on communicator '{}' (rank {} of {})", text_of(call), name_, rank(),
                     size());
}

Algorithm MessageCommunicator::algorithm() const noexcept {
  const bool routed = wanted_ == Algorithm::ring || wanted_ == Algorithm::tree;
  return routed ? wanted_ : window_ ? Algorithm::shared : Algorithm::direct;
}

Work MessageCommunicator::launch(const OperationCall& call,
                                 std::function<CollectiveTask(int tag)> start) {
  // The upper half of the tags is for collectives, a few for each, used again after thousands.
  const int first = user_tags();
  const int operations = (transport_->tags() - first) / tags_per_operation;
  const int tag = first + operations_ * tags_per_operation;
  operations_ = (operations_ + 1) % operations;
#if FOURFOLD_CONTRACTS
  CollectiveTask task = checked(*transport_, tag + check_tag, name_, text_of(call),
                                [start = std::move(start), tag] { return start(tag + task_tag); });
#else
  CollectiveTask task = start(tag + task_tag);
#endif
  return transport_->progress().launch(
      std::move(task), described(call),
      transport_->progress().recorder().enter(group_, call_of(call)));
}

Work MessageCommunicator::launch_message(const OperationCall& call) {
  FOURFOLD_EXPECT(call.tag >= 0 && call.tag < user_tags());
  auto batch = transport_->batch();
  if (call.operation == Operation::send) {
    batch->send(call.send.data(), call.send.bytes(), call.peer, call.tag);
  } else {
    batch->recv(call.recv.data(), call.recv.bytes(), call.peer, call.tag);
  }
  return transport_->progress().launch(
      exchange(std::move(batch)), described(call),
      transport_->progress().recorder().enter(group_, call_of(call)));
}

Work MessageCommunicator::post(const OperationCall& call) {
  expect_valid(*this, call);
  if (!is_collective(call.operation)) {
    return launch_message(call);
  }
  OperationCall kept = call;
  kept.send_counts = kept.recv_counts = {};  // which are gone when a task is made late
  auto sends = extents_of(call.send_counts, call.send.dtype());
  auto recvs = extents_of(call.recv_counts, call.recv.dtype());
  if (!window_ || call.operation == Operation::all_to_all) {
    return launch(call, [this, kept, sends = std::move(sends), recvs = std::move(recvs)](int tag) {
      return task_of_messages(kept, sends, recvs, tag);
    });
  }
  // The turn is taken here, where all ranks come by in the same order.
  return launch(call, [this, kept, sends = std::move(sends), recvs = std::move(recvs),
                       turn = window_->take_turn()](int /*tag*/) {
    return shared_task(kept, sends, recvs, turn);
  });
}

CollectiveTask MessageCommunicator::task_of_messages(const OperationCall& call,
                                                     std::span<const Extent> sends,
                                                     std::span<const Extent> recvs, int tag) {
  switch (call.operation) {
    case Operation::all_reduce:
      return reduction_task(call.recv, call.op, tag);
    case Operation::all_gather:
      return gather_task(call, recvs, tag);
    case Operation::reduce_scatter:
      return chunked_reduction(*transport_, tag, scatter_plan(call, sends, order()));
    case Operation::broadcast:
      return tree_broadcast(*transport_, tag, call.recv.data(), call.bytes(), call.peer);
    case Operation::all_to_all:
      return personal_exchange(*transport_, tag, call.send.data(), sends, call.recv.data(), recvs);
    default:
      const std::vector<std::int64_t> nothing(size(), 0);
      return make_task<SmallGather>(*transport_, tag, nullptr, nothing,
                                    [](std::span<const void* const> /*blocks*/) {});
  }
}

CollectiveTask MessageCommunicator::shared_task(const OperationCall& call,
                                                std::span<const Extent> sends,
                                                std::span<const Extent> recvs, std::uint64_t turn) {
  switch (call.operation) {
    case Operation::all_reduce:
      return shared_all_reduce(*window_, turn, call.recv, call.op);
    case Operation::all_gather:
      return shared_gather(*window_, turn, call.send.data(), call.recv.data(),
                           {recvs.begin(), recvs.end()});
    case Operation::reduce_scatter:
      return shared_reduce_scatter(*window_, turn, scatter_plan(call, sends, Order::ranks));
    case Operation::broadcast: {
      std::vector<Extent> parts(size());
      parts[call.peer].bytes = call.bytes();
      return shared_gather(*window_, turn, call.recv.data(), call.recv.data(), std::move(parts));
    }
    default:
      return shared_barrier(*window_, turn);
  }
}

CollectiveTask MessageCommunicator::reduction_task(TensorView data, ReduceOp op, int tag) {
  if (data.elements() == 0) {
    return has_nothing_to_do;
  }
  if (bytes_of(data) <= small_bytes / size()) {
    const std::vector<std::int64_t> bytes(size(), bytes_of(data));
    return make_task<SmallGather>(
        *transport_, tag, data.data(), bytes,
        [data, op, its_order = order()](std::span<const void* const> blocks) {
          reduce(data.dtype(), op, blocks, data.data(), data.elements(), its_order);
        });
  }
  if (algorithm() == Algorithm::ring || algorithm() == Algorithm::tree) {
    Route route =
        algorithm() == Algorithm::ring ? ring_route(rank(), size()) : tree_route(rank(), size());
    return make_task<RingTreeReduction>(*transport_, tag, std::move(route), data, op);
  }
  auto parts = even_extents(data, size());
  std::byte* const bytes = at(data.data(), 0);
  std::byte* const result = bytes + parts[rank()].begin;
  return chunked_reduction(*transport_, tag,
                           {bytes, std::move(parts), result, bytes, data.dtype(), op});
}

CollectiveTask MessageCommunicator::gather_task(const OperationCall& call,
                                                std::span<const Extent> parts, int tag) {
  const ConstTensorView send = call.send;
  const TensorView recv = call.recv;
  if (bytes_of(recv) > small_bytes && algorithm() == Algorithm::ring) {
    return ring_gather(*transport_, tag, send.data(), recv.data(), {parts.begin(), parts.end()});
  }
  if (bytes_of(recv) > small_bytes || size() == 1) {
    return large_gather(*transport_, tag, send.data(), recv.data(), parts);
  }
  if (recv.elements() == 0) {
    return has_nothing_to_do;
  }
  std::vector<std::int64_t> bytes(parts.size());
  std::transform(parts.begin(), parts.end(), bytes.begin(),
                 [](const Extent& part) { return part.bytes; });
  return make_task<SmallGather>(
      *transport_, tag, send.data(), bytes,
      [recv, parts = std::vector(parts.begin(), parts.end())](std::span<const void* const> blocks) {
        for (std::size_t source = 0; source < parts.size(); ++source) {
          copy_bytes(at(recv.data(), parts[source].begin), blocks[source], parts[source].bytes);
        }
      });
}

std::unique_ptr<Communicator> MessageCommunicator::split(int color, int key,
                                                         const std::string& name) {
  return subgroup(members_of_color(*this, color, key), name);
}

std::unique_ptr<Communicator> MessageCommunicator::subgroup(std::span<const int> members,
                                                            const std::string& name) {
  FOURFOLD_EXPECT(std::count(members.begin(), members.end(), rank()) == 1);
  std::vector<int> world_ranks;
  for (const int member : members) {
    world_ranks.push_back(world_ranks_[member]);
  }
  return std::make_unique<MessageCommunicator>(transport_->subgroup(members, name), name,
                                               std::move(world_ranks), wanted_);
}

}  // namespace fourfold::comm
