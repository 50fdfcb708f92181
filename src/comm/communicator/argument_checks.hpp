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

inline void expect_all_reduce(ConstTensorView data, ReduceOp op) {
  FOURFOLD_EXPECT(is_defined(op, data.dtype()));
}

inline void expect_all_gather(const Communicator& own, ConstTensorView send, ConstTensorView recv,
                              std::span<const std::int64_t> counts) {
  FOURFOLD_EXPECT(std::ssize(counts) == own.size());
  FOURFOLD_EXPECT(send.dtype() == recv.dtype());
  FOURFOLD_EXPECT(send.elements() == counts[own.rank()]);
  FOURFOLD_EXPECT(recv.elements() == total(counts));
}

inline void expect_reduce_scatter(const Communicator& own, ConstTensorView send,
                                  ConstTensorView recv, std::span<const std::int64_t> counts,
                                  ReduceOp op) {
  FOURFOLD_EXPECT(std::ssize(counts) == own.size());
  FOURFOLD_EXPECT(send.dtype() == recv.dtype());
  FOURFOLD_EXPECT(send.elements() == total(counts));
  FOURFOLD_EXPECT(recv.elements() == counts[own.rank()]);
  FOURFOLD_EXPECT(is_defined(op, send.dtype()));
}

inline void expect_broadcast(const Communicator& own, int root) {
  FOURFOLD_EXPECT(root >= 0 && root < own.size());
}

inline void expect_all_to_all(const Communicator& own, ConstTensorView send,
                              std::span<const std::int64_t> send_counts, ConstTensorView recv,
                              std::span<const std::int64_t> recv_counts) {
  FOURFOLD_EXPECT(std::ssize(send_counts) == own.size());
  FOURFOLD_EXPECT(std::ssize(recv_counts) == own.size());
  FOURFOLD_EXPECT(send.dtype() == recv.dtype());
  FOURFOLD_EXPECT(send.elements() == total(send_counts));
  FOURFOLD_EXPECT(recv.elements() == total(recv_counts));
  FOURFOLD_EXPECT(send_counts[own.rank()] == recv_counts[own.rank()]);
}

inline void expect_message(const Communicator& own, int peer) {
  FOURFOLD_EXPECT(peer >= 0 && peer < own.size() && peer != own.rank());
}

/// 0 ... ranks - 1
inline std::vector<int> all_ranks(int ranks) {
  std::vector<int> all(ranks);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace fourfold::comm
