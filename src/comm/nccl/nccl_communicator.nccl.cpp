// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "nccl_communicator.nccl.hpp"

#include "check.nccl.hpp"
#include "communicator/argument_checks.hpp"
#include "communicator/split.hpp"
#include "host/message_communicator.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/device/range.hpp>

#include <fmt/format.h>
#include <native_stream.hpp>

#include <algorithm>
#include <tuple>
#include <utility>

namespace fourfold::comm {
namespace {

ncclDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return ncclFloat32;
    case DType::bf16:
      return ncclBfloat16;
    case DType::f16:
      return ncclFloat16;
    case DType::f64:
      return ncclFloat64;
    case DType::i32:
      return ncclInt32;
    case DType::i64:
      return ncclInt64;
    case DType::u8:
      return ncclUint8;
    case DType::u32:
      return ncclUint32;
    case DType::u64:
      return ncclUint64;
    case DType::u16:
      break;
  }
  throw SystemError(ExitCode::internal,
                    format_message("NCCL has no arithmetic for {} (this is a bug); report it",
                                   fourfold::name(dtype)));
}

ncclRedOp_t op_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::max:
      return ncclMax;
    case ReduceOp::min:
      return ncclMin;
    case ReduceOp::avg:
      return ncclAvg;
    case ReduceOp::sum:
      break;
  }
  return ncclSum;
}

bool are_even(std::span<const std::int64_t> counts) {
  return std::ranges::all_of(counts, [&](std::int64_t count) { return count == counts.front(); });
}

/// Calls that become one operation.
class Group {
 public:
  Group() { check_nccl(ncclGroupStart(), "ncclGroupStart"); }
  ~Group() {
    if (!is_over_) {
      std::ignore = ncclGroupEnd();
    }
  }
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;
  ncclResult_t end() {
    is_over_ = true;
    return ncclGroupEnd();
  }

 private:
  bool is_over_ = false;
};

class Enqueued : public Work::Operation {
 public:
  Enqueued(std::shared_ptr<DeviceCall> call, device::StreamRef lane, device::StreamRef posted_on)
      : call_(std::move(call)), lane_(lane), posted_on_(posted_on) {}
  void wait(device::StreamRef stream) override {
    order(stream);
    if (posted_on_ != stream) {
      order(posted_on_);
    }
  }
  bool test() override {
    const bool is_over = call_->ended.has_happened();
    if (is_over) {
      order(posted_on_);
    }
    return is_over;
  }
  bool mark_end(device::TimedEvent& end) override {
    end.record(lane_);
    return true;
  }

 private:
  void order(device::StreamRef stream) const {
    if (stream != lane_) {
      call_->ended.wait(stream);
    }
  }

  std::shared_ptr<DeviceCall> call_;
  device::StreamRef lane_;
  device::StreamRef posted_on_;
};

}  // namespace

NcclCommunicator::NcclCommunicator(Communicator& host, NcclHandle comm,
                                   std::vector<int> world_ranks, std::shared_ptr<NcclCalls> calls)
    : host_(&host),
      calls_(std::move(calls)),
      comm_(std::move(comm)),
      world_ranks_(std::move(world_ranks)),
      group_(calls_->recorder().add_group(host_->name(), world_ranks_)) {}

NcclCommunicator::NcclCommunicator(std::unique_ptr<Communicator> host, NcclHandle comm,
                                   std::vector<int> world_ranks, std::shared_ptr<NcclCalls> calls)
    : NcclCommunicator(*host, std::move(comm), std::move(world_ranks), std::move(calls)) {
  owned_host_ = std::move(host);
}

device::StreamRef NcclCommunicator::after(device::StreamRef stream, Lane& lane) {
  lane.ready.record(stream);
  lane.ready.wait(lane.stream);
  return lane.stream;
}

Work NcclCommunicator::launch(const std::string& what, const Call& call, ncclComm_t comm,
                              device::StreamRef lane, device::StreamRef stream,
                              const Enqueue& enqueue) {
  const device::Range range([&] { return fmt::format("{} {}", what, name()); });
  const std::shared_ptr<DeviceCall> marks = calls_->begin(group_, call, lane);
  if (call.bytes > 0) {
    const auto in_use = calls_->use();
    Group group;
    enqueue(comm, native(lane));
    calls_->wait_ready(comm, group.end(), fmt::format("{} on communicator '{}'", what, name()));
  }
  calls_->end(marks, lane);
  return Work(std::make_unique<Enqueued>(marks, lane, stream));
}

Work NcclCommunicator::launch(const std::string& what, const Call& call, device::StreamRef stream,
                              const Enqueue& enqueue) {
  const device::StreamRef lane = stream == device::StreamRef{} ? after(stream, own_lane_) : stream;
  return launch(what, call, comm_.get(), lane, stream, enqueue);
}

Work NcclCommunicator::all_reduce(TensorView data, ReduceOp op, device::StreamRef stream,
                                  std::source_location where) {
  expect_all_reduce(data, op);
  return launch("all_reduce", {Operation::all_reduce, bytes_of(data), -1, where}, stream,
                [&](ncclComm_t comm, cudaStream_t on) {
                  calls_->check(comm,
                                ncclAllReduce(data.data(), data.data(), data.elements(),
                                              type_of(data.dtype()), op_of(op), comm, on),
                                "ncclAllReduce");
                });
}

Work NcclCommunicator::all_gather(ConstTensorView send, TensorView recv,
                                  std::span<const std::int64_t> counts, device::StreamRef stream,
                                  std::source_location where) {
  expect_all_gather(*this, send, recv, counts);
  return launch(
      "all_gather", {Operation::all_gather, bytes_of(recv), -1, where}, stream,
      [&](ncclComm_t comm, cudaStream_t on) {
        if (are_even(counts)) {
          calls_->check(comm,
                        ncclAllGather(send.data(), recv.data(), send.bytes(), ncclUint8, comm, on),
                        "ncclAllGather");
          return;
        }
        const auto begins = begins_of(counts, recv.dtype());
        const std::int64_t element = size_in_bytes(recv.dtype());
        for (int root = 0; root < size(); ++root) {
          std::byte* const place = at(recv.data(), begins[root]);
          const void* const source = root == rank() ? send.data() : place;
          if (counts[root] > 0) {
            calls_->check(
                comm,
                ncclBroadcast(source, place, counts[root] * element, ncclUint8, root, comm, on),
                "ncclBroadcast");
          }
        }
      });
}

Work NcclCommunicator::reduce_scatter(ConstTensorView send, TensorView recv,
                                      std::span<const std::int64_t> counts, ReduceOp op,
                                      device::StreamRef stream, std::source_location where) {
  expect_reduce_scatter(*this, send, recv, counts, op);
  return launch("reduce_scatter", {Operation::reduce_scatter, bytes_of(send), -1, where}, stream,
                [&](ncclComm_t comm, cudaStream_t on) {
                  const ncclDataType_t type = type_of(send.dtype());
                  if (are_even(counts)) {
                    calls_->check(comm,
                                  ncclReduceScatter(send.data(), recv.data(), recv.elements(), type,
                                                    op_of(op), comm, on),
                                  "ncclReduceScatter");
                    return;
                  }
                  const auto begins = begins_of(counts, send.dtype());
                  for (int root = 0; root < size(); ++root) {
                    if (counts[root] > 0) {
                      calls_->check(comm,
                                    ncclReduce(at(send.data(), begins[root]), recv.data(),
                                               counts[root], type, op_of(op), root, comm, on),
                                    "ncclReduce");
                    }
                  }
                });
}

Work NcclCommunicator::broadcast(TensorView data, int root, device::StreamRef stream,
                                 std::source_location where) {
  expect_broadcast(*this, root);
  return launch(
      "broadcast", {Operation::broadcast, bytes_of(data), root, where}, stream,
      [&](ncclComm_t comm, cudaStream_t on) {
        calls_->check(
            comm, ncclBroadcast(data.data(), data.data(), data.bytes(), ncclUint8, root, comm, on),
            "ncclBroadcast");
      });
}

Work NcclCommunicator::all_to_all(ConstTensorView send, std::span<const std::int64_t> send_counts,
                                  TensorView recv, std::span<const std::int64_t> recv_counts,
                                  device::StreamRef stream, std::source_location where) {
  expect_all_to_all(*this, send, send_counts, recv, recv_counts);
  const auto to = begins_of(send_counts, send.dtype());
  const auto from = begins_of(recv_counts, recv.dtype());
  const std::int64_t element = size_in_bytes(recv.dtype());
  return launch(
      "all_to_all", {Operation::all_to_all, std::max(bytes_of(send), bytes_of(recv)), -1, where},
      stream, [&](ncclComm_t comm, cudaStream_t on) {
        for (int peer = 0; peer < size(); ++peer) {
          if (send_counts[peer] > 0) {
            calls_->check(comm,
                          ncclSend(at(send.data(), to[peer]), send_counts[peer] * element,
                                   ncclUint8, peer, comm, on),
                          "ncclSend");
          }
          if (recv_counts[peer] > 0) {
            calls_->check(comm,
                          ncclRecv(at(recv.data(), from[peer]), recv_counts[peer] * element,
                                   ncclUint8, peer, comm, on),
                          "ncclRecv");
          }
        }
      });
}

NcclHandle NcclCommunicator::split_off(int color, int key, const std::string& its_name,
                                       int most_ctas) {
  calls_->require_none_failed();
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  NcclHandle& begun = comm_.begin_child(its_name);
  config.blocking = 0;
  config.commName = begun.name();
  if (most_ctas > 0) {
    config.maxCTAs = most_ctas;
  }
  const auto in_use = calls_->use();
  const std::string what = fmt::format("ncclCommSplit of '{}' into '{}'", name(), its_name);
  calls_->wait_ready(comm_.get(), ncclCommSplit(comm_.get(), color, key, begun.place(), &config),
                     what);
  NcclHandle child = comm_.take_child();
  if (child.get() != nullptr) {
    child.adopt();
    calls_->wait_ready(child.get(), ncclInProgress, what);
  }
  return child;
}

void NcclCommunicator::expect_messages(std::span<const MessageRoute> routes) {
  constexpr int most_ctas = 4;  // a message takes few of the multiprocessors from the computation
  std::vector<MessageRoute> unknown;
  for (const MessageRoute& route : routes) {
    FOURFOLD_EXPECT(route.from != route.to && std::min(route.from, route.to) >= 0 &&
                    std::max(route.from, route.to) < size());
    if (!expected_.contains(route)) {
      unknown.push_back(route);
    }
  }
  for (const std::vector<MessageRoute>& round : disjoint_rounds(unknown)) {
    int color = NCCL_SPLIT_NOCOLOR;
    const auto mine = std::ranges::find_if(round, [this](const MessageRoute& route) {
      return route.from == rank() || route.to == rank();
    });
    if (mine != round.end()) {
      color = static_cast<int>(mine - round.begin());
    }
    // The sender is rank 0 of the two.
    const int key = mine != round.end() && mine->from == rank() ? 0 : 1;
    NcclHandle two = split_off(color, key, fmt::format("{} messages", name()), most_ctas);
    if (mine != round.end()) {
      lines_.try_emplace(*mine, Line{.comm = std::move(two), .lane = {}});
    }
    expected_.insert(round.begin(), round.end());
  }
}

std::unique_ptr<RegisteredMemory> NcclCommunicator::register_memory(void* data, std::size_t bytes) {
  if (size() == 1 || bytes == 0) {
    return nullptr;
  }
  auto registered = std::make_unique<NcclRegistration>(calls_);
  registered->add(comm_, data, bytes);
  for (const auto& [route, line] : lines_) {
    registered->add(line.comm, data, bytes);
  }
  return registered;
}

NcclCommunicator::Line& NcclCommunicator::line_of(const MessageRoute& route) {
  const auto found = lines_.find(route);
  if (found == lines_.end()) {
    throw SystemError(ExitCode::internal,
                      format_message("a message of '{}' from rank {} to {} with tag {} was not "
                                     "expected (expect_messages() lays its line) this is a bug: "
                                     "report it",
                                     name(), route.from, route.to, route.tag));
  }
  return found->second;
}

Work NcclCommunicator::send(ConstTensorView data, int peer, int tag, device::StreamRef stream,
                            std::source_location where) {
  expect_message(*this, peer);
  Line& line = line_of({rank(), peer, tag});
  return launch(fmt::format("send(to {}, tag {})", peer, tag),
                {Operation::send, bytes_of(data), peer, where}, line.comm.get(),
                after(stream, line.lane), stream, [&](ncclComm_t comm, cudaStream_t on) {
                  calls_->check(comm, ncclSend(data.data(), data.bytes(), ncclUint8, 1, comm, on),
                                "ncclSend");
                });
}

Work NcclCommunicator::recv(TensorView data, int peer, int tag, device::StreamRef stream,
                            std::source_location where) {
  expect_message(*this, peer);
  Line& line = line_of({peer, rank(), tag});
  return launch(fmt::format("recv(from {}, tag {})", peer, tag),
                {Operation::recv, bytes_of(data), peer, where}, line.comm.get(),
                after(stream, line.lane), stream, [&](ncclComm_t comm, cudaStream_t on) {
                  calls_->check(comm, ncclRecv(data.data(), data.bytes(), ncclUint8, 0, comm, on),
                                "ncclRecv");
                });
}

std::unique_ptr<Communicator> NcclCommunicator::split(int color, int key, const std::string& name) {
  return subgroup(members_of_color(*host_, color, key), name);
}

std::unique_ptr<Communicator> NcclCommunicator::subgroup(std::span<const int> members,
                                                         const std::string& name) {
  std::vector<int> world_ranks;
  for (const int member : members) {
    world_ranks.push_back(world_ranks_[member]);
  }
  auto host = host_->subgroup(members, name);
  NcclHandle comm = split_off(*std::ranges::min_element(members), host->rank(), name, 0);
  return std::unique_ptr<Communicator>(
      new NcclCommunicator(std::move(host), std::move(comm), std::move(world_ranks), calls_));
}

}  // namespace fourfold::comm
