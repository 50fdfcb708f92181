// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "head_blocks.hpp"

#include <fourfold/parallel/context_parallel.hpp>

#include <array>
#include <vector>

namespace fourfold::parallel {

/// Every rank gathers all keys and values, in causal order, and attends with its own queries.
class AllgatherAttention : public ContextParallel {
 public:
  AllgatherAttention(comm::Communicator& cp, const ContextParallelOptions& options,
                     device::Arena& arena);

  void attention(const kernels::AttentionShape& shape, kernels::ConstHeads q, kernels::ConstHeads k,
                 kernels::ConstHeads v, kernels::Heads out, float* lse_BNT,
                 device::StreamRef stream) override;
  void attention_backward(const kernels::AttentionShape& shape, kernels::ConstHeads q,
                          kernels::ConstHeads k, kernels::ConstHeads v, kernels::ConstHeads out,
                          kernels::ConstHeads dout, const float* lse_BNT, float* delta_BNT,
                          kernels::Heads dq, kernels::Heads dk, kernels::Heads dv,
                          device::StreamRef stream) override;

 private:
  /// Of all ranks, in causal order, in ordered_.
  KeyValues gather(const kernels::AttentionShape& shape, kernels::ConstHeads k,
                   kernels::ConstHeads v, device::StreamRef stream);
  /// Sums `all` (in causal order, in by_rank_) over the ranks; this rank's part is in mine_.
  KeyValues sum(const kernels::AttentionShape& shape, const KeyValues& all,
                device::StreamRef stream);
  /// What rank `rank` holds, in a message in which all ranks' parts follow one another.
  KeyValues part(TensorView message, DType dtype, int rank,
                 const kernels::AttentionShape& shape) const;
  /// A chunk of queries and the keys in front of it and in it.
  kernels::AttentionShape seen_by(int chunk, const kernels::AttentionShape& shape) const;

  comm::Communicator* cp_;
  std::int64_t kv_features_;  ///< K H
  TensorView mine_;           ///< f32 or, in the forward pass, the compute dtype; so are the others
  TensorView by_rank_;
  TensorView ordered_;
  DType compute_;
  std::vector<std::int64_t> counts_;
};

}  // namespace fourfold::parallel
