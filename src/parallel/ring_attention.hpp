// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "head_blocks.hpp"

#include <fourfold/comm/work.hpp>
#include <fourfold/parallel/context_parallel.hpp>

#include <array>

namespace fourfold::parallel {

/// Blocks that travel around a ring on a stream of their own: to the next rank, from the previous.
class RingLink {
 public:
  /// @param ring, communication  borrowed
  RingLink(comm::Communicator& ring, device::StreamRef communication, int tag)
      : ring_(&ring), communication_(communication), tag_(tag) {}

  /// Sends `here` and fills `arriving` with what the previous rank sends, behind all that is on
  /// `stream` now. Both must stay as they are until finish().
  void start(ConstTensorView here, TensorView arriving, device::StreamRef stream);
  /// Moves on what is in flight: a host transport does only when somebody looks.
  void look();
  /// Orders `stream` behind the arrival.
  void finish(device::StreamRef stream);

 private:
  comm::Communicator* ring_;
  device::StreamRef communication_;
  int tag_;
  device::Event ready_;
  comm::Work arrival_;
  comm::Work departure_;
};

/// Keys and values go around the ring; each block is attended to while the next one is on its way.
class RingAttention : public ContextParallel {
 public:
  RingAttention(comm::Communicator& cp, const ContextParallelOptions& options,
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
  /// What one backward pass has of its queries, whatever keys are here.
  struct Queries {
    kernels::AttentionShape shape;
    kernels::ConstHeads q;
    kernels::ConstHeads dout;
    const float* lse;
    const float* delta;
    kernels::Heads dq;                ///< f32
    std::array<bool, 2> has_dq = {};  ///< by chunk: whether there is something to add to
  };

  /// The position whose block is here after so many hops.
  int holder(int hop) const { return (cp_->rank() - hop + cp_->size()) % cp_->size(); }
  KeyValues block(int hop, const kernels::AttentionShape& shape) const;
  KeyValues gradients(TensorView memory, const kernels::AttentionShape& shape) const;
  /// `target` when it is f32, else the f32 memory that gathers what goes there.
  kernels::Heads f32_image(const kernels::Heads& target,
                           const kernels::AttentionShape& shape) const;
  void pack(const kernels::AttentionShape& shape, kernels::ConstHeads k, kernels::ConstHeads v,
            device::StreamRef stream);
  /// Makes in `target` the gradients of the keys and values of position `key_rank`.
  void differentiate(Queries& queries, int key_rank, kernels::ConstHeads k, kernels::ConstHeads v,
                     const KeyValues& target, device::StreamRef stream);

  comm::Communicator* cp_;
  std::int64_t kv_features_;             ///< K H
  std::array<TensorView, 2> blocks_;     ///< the one that is here, the one that is on its way
  std::array<TensorView, 3> gradients_;  ///< f32: being made, arriving, departing
  TensorView image_;                     ///< f32: outputs or dq while they gather; bf16 only
  device::Stream communication_;
  RingLink keys_;
  RingLink sums_;
};

}  // namespace fourfold::parallel
