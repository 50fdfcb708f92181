// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What every transport expects of a call, as far as one rank sees it: the preconditions of
/// communicator.hpp. At the head of each operation, before anything is enqueued or told to others.
#pragma once

#include <fourfold/base/contract.hpp>
#include <fourfold/base/tensor_view.hpp>
#include <fourfold/comm/communicator.hpp>

#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

namespace fourfold::comm {

inline std::int64_t total(std::span<const std::int64_t> counts) {
  return std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
}

inline bool is_defined(ReduceOp op, DType dtype) {
  return op != ReduceOp::avg || dtype == DType::f32 || dtype == DType::f64 ||
         dtype == DType::bf16 || dtype == DType::f16;
}

inline void expect_valid(const Communicator& own, const OperationCall& call) {
  const bool gathers = call.operation == Operation::all_gather;
  const bool scatters = call.operation == Operation::reduce_scatter;
  const bool exchanges = call.operation == Operation::all_to_all;
  if (scatters || exchanges) {
    FOURFOLD_EXPECT(std::ssize(call.send_counts) == own.size());
    FOURFOLD_EXPECT(call.send.elements() == total(call.send_counts));
  }
  if (gathers || exchanges) {
    FOURFOLD_EXPECT(std::ssize(call.recv_counts) == own.size());
    FOURFOLD_EXPECT(call.recv.elements() == total(call.recv_counts));
  }
  FOURFOLD_EXPECT(!(gathers || scatters || exchanges) || call.send.dtype() == call.recv.dtype());
  FOURFOLD_EXPECT(!gathers || call.send.elements() == call.recv_counts[own.rank()]);
  FOURFOLD_EXPECT(!scatters || call.recv.elements() == call.send_counts[own.rank()]);
  FOURFOLD_EXPECT(!exchanges || call.send_counts[own.rank()] == call.recv_counts[own.rank()]);
  FOURFOLD_EXPECT(is_defined(call.op, call.recv.dtype()));
  if (call.operation == Operation::broadcast || !is_collective(call.operation)) {
    FOURFOLD_EXPECT(call.peer >= 0 && call.peer < own.size());
    FOURFOLD_EXPECT(is_collective(call.operation) || call.peer != own.rank());
  }
}

/// 0 ... ranks - 1
inline std::vector<int> all_ranks(int ranks) {
  std::vector<int> all(ranks);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace fourfold::comm
