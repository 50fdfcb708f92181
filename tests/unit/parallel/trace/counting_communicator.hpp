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
  comm::Work post(const comm::OperationCall& call) override {
    using comm::Operation;
    const std::int64_t elements = call.send.elements();
    if (call.operation == Operation::all_reduce) {
      count(2 * (elements - even_part(elements, size(), rank()).count), call.send.dtype());
    } else if (call.operation == Operation::all_gather) {
      count((size() - 1) * elements, call.send.dtype());
    } else if (call.operation == Operation::reduce_scatter) {
      count(elements - call.recv.elements(), call.send.dtype());
    } else if (call.operation == Operation::all_to_all) {
      count(elements - call.send_counts[static_cast<std::size_t>(rank())], call.send.dtype());
    } else if (call.operation == Operation::send) {
      count(elements, call.send.dtype());
    }
    return through_->post(call);
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
