// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/box.hpp>
#include <fourfold/comm/communicator.hpp>

#include <memory>
#include <string>

namespace fourfold::test {

/// Counts the bytes that a rank must hand to others, whatever the transport makes of an operation.
class CountingCommunicator : public comm::Communicator {
 public:
  explicit CountingCommunicator(comm::Communicator& through) : through_(&through) {}
  std::int64_t sent_bytes() const noexcept { return sent_bytes_; }

  comm::Communicator& host() noexcept override { return through_->host(); }
  int rank() const noexcept override { return through_->rank(); }
  int size() const noexcept override { return through_->size(); }
  const std::string& name() const noexcept override { return through_->name(); }
  comm::Work all_reduce(TensorView data, comm::ReduceOp op, device::StreamRef stream,
                        std::source_location where = std::source_location::current()) override {
    count(2 * (data.elements() - even_part(data.elements(), size(), rank()).count), data.dtype());
    return through_->all_reduce(data, op, stream, where);
  }
  comm::Work all_gather(ConstTensorView send, TensorView recv, std::span<const std::int64_t> counts,
                        device::StreamRef stream,
                        std::source_location where = std::source_location::current()) override {
    count((size() - 1) * send.elements(), send.dtype());
    return through_->all_gather(send, recv, counts, stream, where);
  }
  comm::Work reduce_scatter(ConstTensorView send, TensorView recv,
                            std::span<const std::int64_t> counts, comm::ReduceOp op,
                            device::StreamRef stream,
                            std::source_location where = std::source_location::current()) override {
    count(send.elements() - recv.elements(), send.dtype());
    return through_->reduce_scatter(send, recv, counts, op, stream, where);
  }
  comm::Work broadcast(TensorView data, int root, device::StreamRef stream,
                       std::source_location where = std::source_location::current()) override {
    return through_->broadcast(data, root, stream, where);
  }
  comm::Work all_to_all(ConstTensorView send, std::span<const std::int64_t> send_counts,
                        TensorView recv, std::span<const std::int64_t> recv_counts,
                        device::StreamRef stream,
                        std::source_location where = std::source_location::current()) override {
    count(send.elements() - send_counts[static_cast<std::size_t>(rank())], send.dtype());
    return through_->all_to_all(send, send_counts, recv, recv_counts, stream, where);
  }
  comm::Work send(ConstTensorView data, int peer, int tag, device::StreamRef stream,
                  std::source_location where = std::source_location::current()) override {
    count(data.elements(), data.dtype());
    return through_->send(data, peer, tag, stream, where);
  }
  comm::Work recv(TensorView data, int peer, int tag, device::StreamRef stream,
                  std::source_location where = std::source_location::current()) override {
    return through_->recv(data, peer, tag, stream, where);
  }
  void barrier(std::source_location where = std::source_location::current()) override {
    through_->barrier(where);
  }
  std::unique_ptr<Communicator> split(int color, int key, const std::string& name) override {
    return through_->split(color, key, name);
  }

 private:
  void count(std::int64_t elements, DType dtype) {
    sent_bytes_ += elements * static_cast<std::int64_t>(size_in_bytes(dtype));
  }

  comm::Communicator* through_;
  std::int64_t sent_bytes_ = 0;
};

}  // namespace fourfold::test
