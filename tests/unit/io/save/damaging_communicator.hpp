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
  comm::Work post(const comm::OperationCall& call) override {
    if (call.operation != comm::Operation::broadcast) {
      return inner_.post(call);
    }
    constexpr std::size_t long_bytes = 500;
    inner_.post(call).wait(call.stream);
    if (!is_done_ && call.recv.bytes() >= long_bytes) {
      static_cast<std::byte*>(call.recv.data())[long_bytes / 2] ^= std::byte{1};
      is_done_ = true;
    }
    return {};
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
