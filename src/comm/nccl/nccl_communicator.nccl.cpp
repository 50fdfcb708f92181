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

Work NcclCommunicator::launch(const std::string& what, const OperationCall& call, ncclComm_t comm,
                              device::StreamRef lane) {
  const device::Range range([&] { return fmt::format("{} {}", what, name()); });
  const std::shared_ptr<DeviceCall> marks = calls_->begin(group_, call_of(call), lane);
  if (call.bytes() > 0) {
    const auto in_use = calls_->use();
    Group group;
    enqueue(call, comm, native(lane));
    calls_->wait_ready(comm, group.end(), fmt::format("{} on communicator '{}'", what, name()));
  }
  calls_->end(marks, lane);
  return Work(std::make_unique<Enqueued>(marks, lane, call.stream));
}

Work NcclCommunicator::post(const OperationCall& call) {
  if (call.operation == Operation::barrier) {
    return host_->post(call);
  }
  expect_valid(*this, call);
  if (is_collective(call.operation)) {
    // They go where the caller says; for the default stream on a stream of our own.
    const bool is_default = call.stream == device::StreamRef{};
    return launch(std::string(comm::name(call.operation)), call, comm_.get(),
                  is_default ? after(call.stream, own_lane_) : call.stream);
  }
  const bool sends = call.operation == Operation::send;
  Line& line = line_of({sends ? rank() : call.peer, sends ? call.peer : rank(), call.tag});
  const std::string what = fmt::format("{}({} {}, tag {})", comm::name(call.operation),
                                       sends ? "to" : "from", call.peer, call.tag);
  return launch(what, call, line.comm.get(), after(call.stream, line.lane));
}

void NcclCommunicator::enqueue(const OperationCall& call, ncclComm_t comm, cudaStream_t on) {
  const void* const from = call.send.data();
  void* const to = call.recv.data();
  switch (call.operation) {
    case Operation::all_reduce:
      calls_->check(comm,
                    ncclAllReduce(from, to, call.recv.elements(), type_of(call.recv.dtype()),
                                  op_of(call.op), comm, on),
                    "ncclAllReduce");
      break;
    case Operation::broadcast:
      calls_->check(comm, ncclBroadcast(from, to, call.bytes(), ncclUint8, call.peer, comm, on),
                    "ncclBroadcast");
      break;
    case Operation::send:  // the sender is rank 0 of the two
      calls_->check(comm, ncclSend(from, call.bytes(), ncclUint8, 1, comm, on), "ncclSend");
      break;
    case Operation::recv:
      calls_->check(comm, ncclRecv(to, call.bytes(), ncclUint8, 0, comm, on), "ncclRecv");
      break;
    case Operation::all_gather:
      if (are_even(call.recv_counts)) {
        calls_->check(comm, ncclAllGather(from, to, call.send.bytes(), ncclUint8, comm, on),
                      "ncclAllGather");
        break;
      }
      return enqueue_parts(call, comm, on);
    case Operation::reduce_scatter:
      if (are_even(call.send_counts)) {
        calls_->check(comm,
                      ncclReduceScatter(from, to, call.recv.elements(), type_of(call.send.dtype()),
                                        op_of(call.op), comm, on),
                      "ncclReduceScatter");
        break;
      }
      return enqueue_parts(call, comm, on);
    default:
      return enqueue_parts(call, comm, on);
  }
}

void NcclCommunicator::enqueue_parts(const OperationCall& call, ncclComm_t comm, cudaStream_t on) {
  const auto to = extents_of(call.recv_counts, call.recv.dtype());
  const auto from = extents_of(call.send_counts, call.send.dtype());
  for (int peer = 0; peer < size(); ++peer) {
    if (!from.empty() && from[peer].bytes > 0) {
      const std::byte* const part = at(call.send.data(), from[peer].begin);
      if (call.operation == Operation::reduce_scatter) {
        calls_->check(comm,
                      ncclReduce(part, call.recv.data(), call.send_counts[peer],
                                 type_of(call.send.dtype()), op_of(call.op), peer, comm, on),
                      "ncclReduce");
      } else {
        calls_->check(comm, ncclSend(part, from[peer].bytes, ncclUint8, peer, comm, on),
                      "ncclSend");
      }
    }
    if (!to.empty() && to[peer].bytes > 0) {
      std::byte* const part = at(call.recv.data(), to[peer].begin);
      if (call.operation == Operation::all_gather) {
        const void* const source = peer == rank() ? call.send.data() : part;
        calls_->check(comm, ncclBroadcast(source, part, to[peer].bytes, ncclUint8, peer, comm, on),
                      "ncclBroadcast");
      } else {
        calls_->check(comm, ncclRecv(part, to[peer].bytes, ncclUint8, peer, comm, on), "ncclRecv");
      }
    }
  }
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
                                     "expected (expect_messages() lays its line); this is a bug: "
                                     "report it",
                                     name(), route.from, route.to, route.tag));
  }
  return found->second;
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
