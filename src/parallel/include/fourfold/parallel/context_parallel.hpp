// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Attention over sequences that the cp axis cuts (context_cut.hpp). Legend: B sequences, T their
/// tokens on this rank, C ranks of the cp axis, N query heads and K key/value heads of this rank, H
/// features of a head, e bytes of a stored number.
///
/// Sent per rank, layer and micro-batch; bytes taken from the arena:
/// - ring (Liu et al., 2023): keys and values travel from rank to rank while those that are here
///   are attended to. Forward (C - 1) 2 B T K H e; backward that, and (C - 1) 2 B T K H in f32.
///   Takes 4 B T K H e + 6 B T K H in f32, and for 16 bits B T N H in f32.
/// - ulysses (Jacobs et al., 2023): heads are dealt to the ranks, each of which then has all tokens
///   of some of them; with fewer key/value heads than ranks, neighbours share one. With K' the
///   larger of K and C: forward (C - 1) / C 2 B T (N + K') H e; backward (C - 1) / C B T (3 N + 4
///   K') H e and one f32 per query and head. Takes 4 B T (N + K') H e, and 2 B T N in f32. (Shared
///   heads have their gradients in f32.) In 16 bits on a device outputs are dealt in the place of
///   those numbers, for the library that makes them itself: backward 4 N for 3 N, takes
///   B T (6 N + 4 K') H e, and B T N in f32.
/// - allgather: all keys and values on every rank. Forward (C - 1) 2 B T K H e; backward that, and
///   (C - 1) 2 B T K H in f32. Takes (2 + 4 C) B T K H in f32.
///
/// Outputs and gradients accumulate in f32 whatever the storage, so they do not get worse with the
/// number of ranks. (Where a device's library computes, what it adds is rounded to 16 bits.) The
/// same mesh gives the same bits every time.
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/device/arena.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/kernels/attention.hpp>
#include <fourfold/kernels/library_memory.hpp>
#include <fourfold/model/matmul_observer.hpp>
#include <fourfold/parallel/context_cut.hpp>

#include <cstdint>
#include <memory>
#include <vector>

namespace fourfold::parallel {

struct ContextParallelOptions {
  ContextMode mode = ContextMode::ring;
  std::int64_t sequences = 0;  ///< B, the most of one micro-batch
  std::int64_t tokens = 0;     ///< T: those of a sequence on this rank, always
  std::int64_t heads = 0;      ///< N
  std::int64_t kv_heads = 0;   ///< K
  std::int64_t head_dim = 0;   ///< H
  DType compute = DType::f32;  ///< of q, k, v and their gradients
};

/// What the hooks do on the cp axis. Collective over it; nothing allocates after construction. One
/// thread per object.
class ContextParallel {
 public:
  virtual ~ContextParallel() = default;
  ContextParallel() = default;
  ContextParallel(const ContextParallel&) = delete;
  ContextParallel& operator=(const ContextParallel&) = delete;

  /// As model::ParallelHooks has it: the parts of attention are products too.
  void show_products_to(model::MatmulObserver* observer) noexcept { matmul_observer_ = observer; }

  /// The contracts are those of model::ParallelHooks; `shape` has this rank's sizes. lse_BNT is
  /// what the mode needs for its own backward pass: B T N numbers, not always in the kernel's
  /// order.
  virtual void attention(const kernels::AttentionShape& shape, kernels::ConstHeads q,
                         kernels::ConstHeads k, kernels::ConstHeads v, kernels::Heads out,
                         float* lse_BNT, device::StreamRef stream) = 0;
  virtual void attention_backward(const kernels::AttentionShape& shape, kernels::ConstHeads q,
                                  kernels::ConstHeads k, kernels::ConstHeads v,
                                  kernels::ConstHeads out, kernels::ConstHeads dout,
                                  const float* lse_BNT, float* delta_BNT, kernels::Heads dq,
                                  kernels::Heads dk, kernels::Heads dv,
                                  device::StreamRef stream) = 0;

 protected:
  model::MatmulObserver* matmul_observer() const noexcept { return matmul_observer_; }

 private:
  model::MatmulObserver* matmul_observer_ = nullptr;
};

/// The chosen mode over `cp` (borrowed), with its buffers from `arena`. Nothing when cp has one
/// rank: then the model's own attention is all there is to do.
/// @pre the sizes are as validate_context_cut has passed them
std::unique_ptr<ContextParallel> context_parallel(comm::Communicator& cp,
                                                  const ContextParallelOptions& options,
                                                  device::Arena& arena);

/// What position `rank` of `cp` asks of the kernels' attention in the chosen mode, or, where cp is
/// 1, the model's own: for kernels::library_memory_bytes(). @pre likewise
std::vector<kernels::AttentionUse> attention_uses(const ContextParallelOptions& options, int cp,
                                                  int rank, bool deterministic);

}  // namespace fourfold::parallel
