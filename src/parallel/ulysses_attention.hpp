// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "head_blocks.hpp"

#include <fourfold/parallel/context_parallel.hpp>

#include <span>
#include <vector>

namespace fourfold::parallel {

/// Deals the heads to the ranks of the cp axis: each has all tokens of its heads, in causal order,
/// attends as one rank would, and gives the results back to the ranks of the tokens.
class UlyssesAttention : public ContextParallel {
 public:
  UlyssesAttention(comm::Communicator& cp, const ContextParallelOptions& options,
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
  enum class Kind : std::uint8_t { query, key_value };
  /// A tensor on its way: all heads of the tokens held here, and all tokens of the heads dealt to
  /// this rank, in causal order.
  struct Operand {
    Kind kind;
    kernels::ConstHeads here;
    kernels::Heads dealt;
  };
  struct Result {
    Kind kind;
    kernels::Heads here;
    kernels::Heads dealt;
  };

  /// Features of the heads dealt to one rank, and where those of `rank` begin among all.
  std::int64_t features(Kind kind) const;
  std::int64_t first_feature(Kind kind, int rank) const;
  /// Attention over all tokens with the heads dealt to this rank.
  kernels::AttentionShape dealt(const kernels::AttentionShape& shape) const;
  /// Elements of all tokens of the heads dealt to this rank.
  std::int64_t elements(Kind kind, const kernels::AttentionShape& shape) const;
  /// Dense memory of that size from element `first` on.
  kernels::Heads place(TensorView memory, std::int64_t first, Kind kind,
                       const kernels::AttentionShape& shape) const;
  /// Tensor `index` of those that travel together, in a message with one part per rank.
  template <class Travelling>
  kernels::Heads in_message(TensorView message, std::span<const Travelling> together,
                            std::size_t index, int rank,
                            const kernels::AttentionShape& shape) const;

  /// here -> dealt. Packs in leaving_, which may be where they are dealt to.
  void deal(std::span<const Operand> operands, const kernels::AttentionShape& shape,
            device::StreamRef stream);
  /// dealt -> here, through leaving_ and `arriving`, which may be where they were dealt to. What
  /// sharers of a key/value head have is summed.
  void collect(std::span<const Result> results, TensorView arriving,
               const kernels::AttentionShape& shape, device::StreamRef stream);
  /// delta_BNT of the tokens held here -> that of the heads dealt to this rank.
  const float* deal_delta(const float* delta_BNT, const kernels::AttentionShape& shape,
                          device::StreamRef stream);
  void exchange(TensorView leaving, TensorView arriving, device::StreamRef stream);

  comm::Communicator* cp_;
  std::int64_t head_dim_;
  std::int64_t heads_;     ///< dealt to one rank
  std::int64_t kv_heads_;  ///< likewise
  int sharers_;            ///< ranks that get the same key/value head
  DType compute_;
  DType kv_gradient_;     ///< f32 where gradients of sharers are summed
  TensorView leaving_;    ///< u8: messages, then operands as they were dealt
  TensorView arriving_;   ///< u8: messages, then results to be collected
  TensorView delta_out_;  ///< f32
  TensorView delta_in_;   ///< f32
  std::vector<std::int64_t> counts_;
};

}  // namespace fourfold::parallel
