// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/communicator.hpp>

#include <memory>
#include <span>
#include <string>

namespace fourfold::io_test {

/// Passes everything on, and changes one byte of the first long message that is broadcast to it.
class DamagingCommunicator : public comm::Communicator {
 public:
  explicit DamagingCommunicator(comm::Communicator& inner) : inner_(inner) {}

  int rank() const noexcept override { return inner_.rank(); }
  int size() const noexcept override { return inner_.size(); }
  const std::string& name() const noexcept override { return inner_.name(); }
  comm::Work all_reduce(TensorView data, comm::ReduceOp op, device::StreamRef stream,
                        std::source_location where = std::source_location::current()) override {
    return inner_.all_reduce(data, op, stream, where);
  }
  comm::Work all_gather(ConstTensorView send, TensorView recv, std::span<const std::int64_t> counts,
                        device::StreamRef stream,
                        std::source_location where = std::source_location::current()) override {
    return inner_.all_gather(send, recv, counts, stream, where);
  }
  comm::Work reduce_scatter(ConstTensorView send, TensorView recv,
                            std::span<const std::int64_t> counts, comm::ReduceOp op,
                            device::StreamRef stream,
                            std::source_location where = std::source_location::current()) override {
    return inner_.reduce_scatter(send, recv, counts, op, stream, where);
  }
  comm::Work broadcast(TensorView data, int root, device::StreamRef stream,
                       std::source_location where = std::source_location::current()) override {
    constexpr std::size_t long_bytes = 500;
    inner_.broadcast(data, root, stream, where).wait(stream);
    if (!is_done_ && data.bytes() >= long_bytes) {
      static_cast<std::byte*>(data.data())[long_bytes / 2] ^= std::byte{1};
      is_done_ = true;
    }
    return {};
  }
  comm::Work all_to_all(ConstTensorView send, std::span<const std::int64_t> send_counts,
                        TensorView recv, std::span<const std::int64_t> recv_counts,
                        device::StreamRef stream,
                        std::source_location where = std::source_location::current()) override {
    return inner_.all_to_all(send, send_counts, recv, recv_counts, stream, where);
  }
  comm::Work send(ConstTensorView data, int peer, int tag, device::StreamRef stream,
                  std::source_location where = std::source_location::current()) override {
    return inner_.send(data, peer, tag, stream, where);
  }
  comm::Work recv(TensorView data, int peer, int tag, device::StreamRef stream,
                  std::source_location where = std::source_location::current()) override {
    return inner_.recv(data, peer, tag, stream, where);
  }
  void barrier(std::source_location where = std::source_location::current()) override {
    inner_.barrier(where);
  }
  std::unique_ptr<Communicator> split(int color, int key, const std::string& name) override {
    return inner_.split(color, key, name);
  }

 protected:
  comm::Communicator& inner() noexcept { return inner_; }

 private:
  comm::Communicator& inner_;
  bool is_done_ = false;
};

}  // namespace fourfold::io_test
