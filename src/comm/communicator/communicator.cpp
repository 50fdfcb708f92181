// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/comm/communicator.hpp>

#include <algorithm>
#include <numeric>

namespace fourfold::comm {
namespace {

template <class T>
T reduced(Communicator& communicator, T value, ReduceOp op, std::source_location where) {
  communicator.host().all_reduce(TensorView(&value, {1}), op, {}, where).wait({});
  return value;
}

}  // namespace

Work Communicator::all_reduce(TensorView data, ReduceOp op, device::StreamRef stream,
                              std::source_location where) {
  return post({.operation = Operation::all_reduce,
               .send = data,
               .recv = data,
               .op = op,
               .stream = stream,
               .where = where});
}

Work Communicator::all_gather(ConstTensorView send, TensorView recv,
                              std::span<const std::int64_t> counts, device::StreamRef stream,
                              std::source_location where) {
  return post({.operation = Operation::all_gather,
               .send = send,
               .recv = recv,
               .recv_counts = counts,
               .stream = stream,
               .where = where});
}

Work Communicator::reduce_scatter(ConstTensorView send, TensorView recv,
                                  std::span<const std::int64_t> counts, ReduceOp op,
                                  device::StreamRef stream, std::source_location where) {
  return post({.operation = Operation::reduce_scatter,
               .send = send,
               .recv = recv,
               .send_counts = counts,
               .op = op,
               .stream = stream,
               .where = where});
}

Work Communicator::broadcast(TensorView data, int root, device::StreamRef stream,
                             std::source_location where) {
  return post({.operation = Operation::broadcast,
               .send = data,
               .recv = data,
               .peer = root,
               .stream = stream,
               .where = where});
}

Work Communicator::all_to_all(ConstTensorView send, std::span<const std::int64_t> send_counts,
                              TensorView recv, std::span<const std::int64_t> recv_counts,
                              device::StreamRef stream, std::source_location where) {
  return post({.operation = Operation::all_to_all,
               .send = send,
               .recv = recv,
               .send_counts = send_counts,
               .recv_counts = recv_counts,
               .stream = stream,
               .where = where});
}

Work Communicator::send(ConstTensorView data, int peer, int tag, device::StreamRef stream,
                        std::source_location where) {
  return post({.operation = Operation::send,
               .send = data,
               .peer = peer,
               .tag = tag,
               .stream = stream,
               .where = where});
}

Work Communicator::recv(TensorView data, int peer, int tag, device::StreamRef stream,
                        std::source_location where) {
  return post({.operation = Operation::recv,
               .recv = data,
               .peer = peer,
               .tag = tag,
               .stream = stream,
               .where = where});
}

void Communicator::barrier(std::source_location where) {
  post({.operation = Operation::barrier, .where = where}).wait({});
}

void Communicator::use(Algorithm /*algorithm*/) {}

std::unique_ptr<RegisteredMemory> Communicator::register_memory(void* /*data*/,
                                                                std::size_t /*bytes*/) {
  return nullptr;
}

void Communicator::expect_messages(std::span<const MessageRoute> /*routes*/) {}

std::unique_ptr<Communicator> Communicator::subgroup(std::span<const int> members,
                                                     const std::string& name) {
  const auto place = std::find(members.begin(), members.end(), rank());
  FOURFOLD_EXPECT(place != members.end());
  const int color = *std::min_element(members.begin(), members.end());
  return split(color, static_cast<int>(place - members.begin()), name);
}

double all_reduce_scalar(Communicator& communicator, double value, ReduceOp op,
                         std::source_location where) {
  return reduced(communicator, value, op, where);
}

std::int64_t all_reduce_scalar(Communicator& communicator, std::int64_t value, ReduceOp op,
                               std::source_location where) {
  return reduced(communicator, value, op, where);
}

std::vector<std::string> all_gather_text(Communicator& communicator, const std::string& text,
                                         std::source_location where) {
  std::vector<std::int64_t> lengths(communicator.size());
  const std::vector<std::int64_t> ones(communicator.size(), 1);
  const std::int64_t own = std::ssize(text);
  Communicator& host = communicator.host();
  host.all_gather(ConstTensorView(&own, {1}), {lengths.data(), {std::ssize(lengths)}}, ones, {},
                  where)
      .wait({});
  std::string all(std::accumulate(lengths.begin(), lengths.end(), std::size_t{0}), '\0');
  host.all_gather({text.data(), DType::u8, {own}}, {all.data(), DType::u8, {std::ssize(all)}},
                  lengths, {}, where)
      .wait({});
  std::vector<std::string> result;
  std::size_t begin = 0;
  for (const std::int64_t length : lengths) {
    result.push_back(all.substr(begin, length));
    begin += length;
  }
  return result;
}

std::string broadcast_text(Communicator& communicator, std::string text, int root,
                           std::source_location where) {
  std::int64_t length = std::ssize(text);
  Communicator& host = communicator.host();
  host.broadcast(TensorView(&length, {1}), root, {}, where).wait({});
  text.resize(length);
  host.broadcast({text.data(), DType::u8, {length}}, root, {}, where).wait({});
  return text;
}

}  // namespace fourfold::comm
