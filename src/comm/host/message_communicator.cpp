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

std::string MessageCommunicator::described(const std::string& call) const {
  return fmt::format("{} on communicator '{}' (rank {} of {})", call, name_, rank(), size());
}

Algorithm MessageCommunicator::algorithm() const noexcept {
  const bool routed = wanted_ == Algorithm::ring || wanted_ == Algorithm::tree;
  return routed ? wanted_ : window_ ? Algorithm::shared : Algorithm::direct;
}

Work MessageCommunicator::launch(const std::string& call, const Call& facts,
                                 std::function<CollectiveTask(int tag)> start) {
  // The upper half of the tags is for collectives, a few for each, used again after thousands.
  const int first = user_tags();
  const int operations = (transport_->tags() - first) / tags_per_operation;
  const int tag = first + operations_ * tags_per_operation;
  operations_ = (operations_ + 1) % operations;
#if FOURFOLD_CONTRACTS
  CollectiveTask task = checked(*transport_, tag + check_tag, name_, call,
                                [start = std::move(start), tag] { return start(tag + task_tag); });
#else
  CollectiveTask task = start(tag + task_tag);
#endif
  return transport_->progress().launch(std::move(task), described(call),
                                       transport_->progress().recorder().enter(group_, facts));
}

Work MessageCommunicator::launch_message(const std::string& call, const Call& facts,
                                         std::unique_ptr<TransferBatch> batch) {
  return transport_->progress().launch(exchange(std::move(batch)), described(call),
                                       transport_->progress().recorder().enter(group_, facts));
}

Work MessageCommunicator::launch_shared(const std::string& call, const Call& facts,
                                        std::function<CollectiveTask(std::uint64_t turn)> start) {
  // Taken here, where all ranks come by in the same order.
  return launch(call, facts, [start = std::move(start), turn = window_->take_turn()](int /*tag*/) {
    return start(turn);
  });
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
  return make_task<ChunkedReduction>(
      *transport_, tag,
      ChunkedReduction::Plan{bytes, std::move(parts), result, bytes, data.dtype(), op});
}

Work MessageCommunicator::all_reduce(TensorView data, ReduceOp op, device::StreamRef /*stream*/,
                                     std::source_location where) {
  expect_all_reduce(data, op);
  const Call facts{Operation::all_reduce, bytes_of(data), -1, where};
  const std::string call = fmt::format("all_reduce({}, {} x {})", comm::name(op),
                                       fourfold::name(data.dtype()), data.elements());
  if (window_) {
    return launch_shared(call, facts, [this, data, op](std::uint64_t turn) {
      return shared_all_reduce(*window_, turn, data, op);
    });
  }
  return launch(call, facts, [this, data, op](int tag) { return reduction_task(data, op, tag); });
}

CollectiveTask MessageCommunicator::gather_machine(ConstTensorView send, TensorView recv,
                                                   std::span<const std::int64_t> counts, int tag) {
  const auto parts = extents_of(counts, recv.dtype());
  if (bytes_of(recv) > small_bytes && algorithm() == Algorithm::ring) {
    return ring_gather(*transport_, tag, send.data(), recv.data(), parts);
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
      *transport_, tag, send.data(), bytes, [recv, parts](std::span<const void* const> blocks) {
        for (std::size_t source = 0; source < parts.size(); ++source) {
          copy_bytes(at(recv.data(), parts[source].begin), blocks[source], parts[source].bytes);
        }
      });
}

Work MessageCommunicator::all_gather(ConstTensorView send, TensorView recv,
                                     std::span<const std::int64_t> counts,
                                     device::StreamRef /*stream*/, std::source_location where) {
  expect_all_gather(*this, send, recv, counts);
  const Call facts{Operation::all_gather, bytes_of(recv), -1, where};
  const std::string call =
      fmt::format("all_gather({} x {})", fourfold::name(recv.dtype()), fmt::join(counts, ","));
  if (window_) {
    auto parts = extents_of(counts, recv.dtype());
    return launch_shared(call, facts,
                         [this, send, recv, parts = std::move(parts)](std::uint64_t turn) {
                           return shared_gather(*window_, turn, send.data(), recv.data(), parts);
                         });
  }
  return launch(call, facts,
                [this, send, recv, parts = std::vector(counts.begin(), counts.end())](int tag) {
                  return gather_machine(send, recv, parts, tag);
                });
}

Work MessageCommunicator::reduce_scatter(ConstTensorView send, TensorView recv,
                                         std::span<const std::int64_t> counts, ReduceOp op,
                                         device::StreamRef /*stream*/, std::source_location where) {
  expect_reduce_scatter(*this, send, recv, counts, op);
  const Call facts{Operation::reduce_scatter, bytes_of(send), -1, where};
  const std::string call = fmt::format("reduce_scatter({}, {} x {})", comm::name(op),
                                       fourfold::name(send.dtype()), fmt::join(counts, ","));
  ChunkedReduction::Plan plan{at(send.data(), 0),
                              extents_of(counts, send.dtype()),
                              at(recv.data(), 0),
                              nullptr,
                              send.dtype(),
                              op,
                              order()};
  if (window_) {
    return launch_shared(call, facts, [this, plan = std::move(plan)](std::uint64_t turn) {
      return shared_reduce_scatter(*window_, turn, plan);
    });
  }
  return launch(call, facts, [this, plan = std::move(plan)](int tag) {
    return make_task<ChunkedReduction>(*transport_, tag, plan);
  });
}

Work MessageCommunicator::broadcast(TensorView data, int root, device::StreamRef /*stream*/,
                                    std::source_location where) {
  expect_broadcast(*this, root);
  const Call facts{Operation::broadcast, bytes_of(data), root, where};
  const std::string call = fmt::format("broadcast(from {}, {} x {})", root,
                                       fourfold::name(data.dtype()), data.elements());
  if (window_) {
    std::vector<Extent> parts(size());
    parts[root].bytes = bytes_of(data);
    return launch_shared(call, facts, [this, data, parts = std::move(parts)](std::uint64_t turn) {
      return shared_gather(*window_, turn, data.data(), data.data(), parts);
    });
  }
  return launch(call, facts, [this, data, root](int tag) {
    return tree_broadcast(*transport_, tag, data.data(), bytes_of(data), root);
  });
}

Work MessageCommunicator::all_to_all(ConstTensorView send,
                                     std::span<const std::int64_t> send_counts, TensorView recv,
                                     std::span<const std::int64_t> recv_counts,
                                     device::StreamRef /*stream*/, std::source_location where) {
  expect_all_to_all(*this, send, send_counts, recv, recv_counts);
  return launch(fmt::format("all_to_all({})", fourfold::name(send.dtype())),
                {Operation::all_to_all, std::max(bytes_of(send), bytes_of(recv)), -1, where},
                [this, send, recv, to = extents_of(send_counts, send.dtype()),
                 from = extents_of(recv_counts, recv.dtype())](int tag) {
                  return personal_exchange(*transport_, tag, send.data(), to, recv.data(), from);
                });
}

Work MessageCommunicator::send(ConstTensorView data, int peer, int tag,
                               device::StreamRef /*stream*/, std::source_location where) {
  expect_message(*this, peer);
  FOURFOLD_EXPECT(tag >= 0 && tag < user_tags());
  auto batch = transport_->batch();
  batch->send(data.data(), data.bytes(), peer, tag);
  return launch_message(fmt::format("send(to {}, tag {}, {} bytes)", peer, tag, data.bytes()),
                        {Operation::send, bytes_of(data), peer, where}, std::move(batch));
}

Work MessageCommunicator::recv(TensorView data, int peer, int tag, device::StreamRef /*stream*/,
                               std::source_location where) {
  expect_message(*this, peer);
  FOURFOLD_EXPECT(tag >= 0 && tag < user_tags());
  auto batch = transport_->batch();
  batch->recv(data.data(), data.bytes(), peer, tag);
  return launch_message(fmt::format("recv(from {}, tag {}, {} bytes)", peer, tag, data.bytes()),
                        {Operation::recv, bytes_of(data), peer, where}, std::move(batch));
}

void MessageCommunicator::barrier(std::source_location where) {
  const Call facts{Operation::barrier, 0, -1, where};
  Work work =
      window_ ? launch_shared("barrier()", facts,
                              [this](std::uint64_t turn) { return shared_barrier(*window_, turn); })
              : launch("barrier()", facts, [this](int tag) {
                  const std::vector<std::int64_t> nothing(size(), 0);
                  return make_task<SmallGather>(*transport_, tag, nullptr, nothing,
                                                [](std::span<const void* const> /*blocks*/) {});
                });
  work.wait({});
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
