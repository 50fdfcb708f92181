// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/comm/library_collectives.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/exchange/operation.hpp>

#include <cstdint>
#include <vector>

namespace fourfold::exchange {

/// One operation of one size on one communicator: its buffers, the call, and what has to come out.
///
/// Elements are whole numbers that every type holds, different on neighbouring places and ranks;
/// sums are exact in float, so that what comes out has one right value whatever the order.
class CollectiveBenchmark {
 public:
  /// Borrows `line`. Buffers are zero: a sum of zeros stays zero, however often it is taken.
  CollectiveBenchmark(Operation operation, const Extent& extent, DType dtype,
                      comm::Communicator& line);

  /// Ours, until it has ended. Collective over the line.
  void run();
  /// The MPI library's own on the same buffers.
  void run_library(comm::LibraryCollectives& library);
  /// Whether the library has the operation for the type and the count.
  bool library_can() const;

  /// Elements of this rank that are not what run() has to give for known input; one call.
  /// Collective over the line. The buffers are zero afterwards.
  std::int64_t wrong_elements();

 private:
  template <class T>
  std::int64_t wrong_elements_typed();

  int before() const { return (line_->rank() + line_->size() - 1) % line_->size(); }
  int after() const { return (line_->rank() + 1) % line_->size(); }

  Operation operation_;
  Extent extent_;
  comm::Communicator* line_;
  std::vector<std::int64_t> counts_;  ///< of each rank's part
  device::Tensor send_;
  device::Tensor recv_;
};

}  // namespace fourfold::exchange
