// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// All memory of a stage besides its parameters. Legend: N rows of products, R rows of the residual
/// stream, D hidden, Q features of the fused query/key/value product, A of attention's output, M
/// heads, H features of a head, U features of the mlp's first product (F, or gate and up: 2F), F
/// ffn, V vocabulary columns here, P positions, C rows of one chunk of the head (N when it has
/// one).
#pragma once

#include "layers.hpp"
#include "micro_batch_context.hpp"

#include <fourfold/base/tensor_view.hpp>
#include <fourfold/device/arena.hpp>
#include <fourfold/device/range.hpp>
#include <fourfold/model/batch.hpp>
#include <fourfold/model/stage.hpp>

#include <cstdint>
#include <vector>

namespace fourfold::model {

/// Sizes of a stage on this rank.
struct StageShape {
  const Architecture& config;
  UnitRange units;
  LocalSizes sizes;
  DType compute = DType::f32;
  StageOptions options;
  std::int64_t residual_rows = 0;  ///< R for all N rows

  bool has_embedding() const noexcept { return units.contains(0); }
  bool has_head() const noexcept { return units.contains(head_unit()); }
  int head_unit() const noexcept { return all_units(config).end - 1; }
  UnitRange blocks() const noexcept;  ///< the units of `units` that are blocks
  /// What a profiler sees of a unit's work: "embedding", "block 7", "head".
  device::Range range_of(int unit) const;
  bool trains() const noexcept { return options.purpose == StageOptions::Purpose::train; }
  bool splits() const noexcept { return options.backward == StageOptions::Backward::split; }
  bool keeps_on_host() const noexcept {
    return trains() && options.activations_on_host && blocks().end > blocks().begin;
  }
  /// Evaluation keeps nothing of a block.
  Recompute recompute() const noexcept { return trains() ? options.recompute : Recompute::full(); }
  KeptActivations kept() const noexcept {
    return recompute().kept(trains() && splits(), config.feed_forward.gated);
  }
  std::int64_t rows() const noexcept { return options.sequences * options.tokens; }
  bool has_head_in_chunks() const noexcept { return has_head() && options.head_chunks > 1; }
  /// All chunks but the last have so many.
  std::int64_t chunk_rows() const noexcept {
    return (rows() + options.head_chunks - 1) / options.head_chunks;
  }
  std::int64_t qkv_features() const noexcept {
    return (sizes.heads + 2 * sizes.kv_heads) * config.attention.head_dim;
  }
  std::int64_t attended_features() const noexcept {
    return sizes.heads * config.attention.head_dim;
  }
  std::int64_t up_features() const noexcept {
    return config.feed_forward.gated ? 2 * sizes.ffn : sizes.ffn;
  }
};

/// What the forward pass of one block keeps for its backward pass (docs/activations.md): the least
/// that it needs with exact attention in linear memory. With MHA and 4D features, not gated: 2D
/// residuals + 2D norms + 3D qkv + D attended + 4D up + 4D activated = 16D elements per token, and
/// f32 statistics. Pieces that are not kept are those of other blocks and slots too.
struct BlockActivations {
  TensorView input_RD;  ///< residual stream in front of the block
  TensorView attn_norm_RD;
  NormStatistics attn_statistics;
  TensorView qkv_NQ;
  TensorView attended_NA;
  TensorView lse_NM;     ///< f32; in the order of ParallelHooks::attention
  TensorView middle_RD;  ///< residual stream between attention and mlp
  TensorView mlp_norm_RD;
  NormStatistics mlp_statistics;
  TensorView up_NU;
  TensorView activated_NF;

  /// The same memory for a micro-batch with fewer rows.
  BlockActivations cut(const MicroBatchContext& pass) const;
};

/// Output gradients of a block's products. Shared by all blocks, or (split backward) kept per block
/// and slot until backward_weight has used them. A gated activation's gradient takes the place of
/// up_NU.
struct ProductGradients {
  TensorView down_RD;  ///< absent: the residual stream's own gradient serves
  TensorView activated_NF;
  TensorView out_RD;  ///< absent: likewise
  TensorView qkv_NQ;

  ProductGradients cut(const MicroBatchContext& pass) const;
};

/// Calls visit(piece of a, piece of b) for the pieces of these kinds.
template <class A, class B, class Visit>
void for_each_piece(const KeptActivations& kinds, A& a, B& b, const Visit& visit) {
  if (kinds.products) {
    visit(a.qkv_NQ, b.qkv_NQ);
    visit(a.middle_RD, b.middle_RD);
  }
  if (kinds.up_product) {
    visit(a.up_NU, b.up_NU);
  }
  if (kinds.product_inputs) {
    visit(a.attn_norm_RD, b.attn_norm_RD);
    visit(a.attended_NA, b.attended_NA);
    visit(a.mlp_norm_RD, b.mlp_norm_RD);
    visit(a.activated_NF, b.activated_NF);
  }
  if (kinds.statistics) {
    visit(a.attn_statistics.mean_R, b.attn_statistics.mean_R);
    visit(a.attn_statistics.rstd_R, b.attn_statistics.rstd_R);
    visit(a.lse_NM, b.lse_NM);
    visit(a.mlp_statistics.mean_R, b.mlp_statistics.mean_R);
    visit(a.mlp_statistics.rstd_R, b.mlp_statistics.rstd_R);
  }
}
/// Likewise of all gradients.
template <class A, class B, class Visit>
void for_each_gradient(A& a, B& b, const Visit& visit) {
  visit(a.down_RD, b.down_RD);
  visit(a.activated_NF, b.activated_NF);
  visit(a.out_RD, b.out_RD);
  visit(a.qkv_NQ, b.qkv_NQ);
}

struct HeadActivations {
  TensorView norm_RD;
  NormStatistics statistics;
  TensorView logits_CV;  ///< of all slots when it is one of several chunks
  TensorView loss_N;

  HeadActivations cut(const MicroBatchContext& pass) const;
};

/// Memory that no unit needs once it is done.
struct Scratch {
  TensorView partial_ND;  ///< at least N * max(D, A) elements
  TensorView summed_RD;   ///< the same memory as partial when R = N
  TensorView delta_NM;    ///< f32
  TensorView sums;        ///< f32, of input gradients in 16 bits that tiles add up to; or absent
  /// qk_norm: queries of one block, or keys, as the product makes them, [N, A]; after the norm and
  /// turned, first all queries, then all keys; f32 per query head, then per key head. Else absent.
  TensorView plain;
  TensorView normed;
  TensorView rstd;

  TensorView partial(std::int64_t rows, std::int64_t features) const;
};

/// Where a slot's blocks keep on the host what they have in device memory only in turn.
struct HostActivations {
  /// In front of each block; absent where it stays in device memory or is made again.
  std::vector<TensorView> residual_RD;
  std::vector<BlockActivations> blocks;
  std::vector<ProductGradients> gradients;  ///< split backward; without those that are shared
};

struct SlotMemory {
  BatchMemory batch;
  /// In front of each block, and after the last. Inside a group of blocks: shared by all groups.
  std::vector<TensorView> residual_RD;
  TensorView dresidual_RD;
  std::vector<BlockActivations> blocks;
  std::vector<ProductGradients> gradients;  ///< shared by all unless the backward pass is split
  HostActivations host;                     ///< empty unless StageShape::keeps_on_host()
  HeadActivations head;
};

/// f32; of all blocks that turn alike.
struct RotaryTable {
  PositionTraits positions;
  TensorView table_PH;
};

struct StageMemory {
  std::vector<SlotMemory> slots;
  /// With activations on the host: blocks, and inputs of groups, whose memory all slots take in
  /// turn. Block i has place i % block_turns, the input of group g > 0 has (g - 1) % input_turns.
  std::size_t block_turns = 0;
  std::size_t input_turns = 0;
  Scratch scratch;
  std::vector<RotaryTable> rotary_tables;
  std::vector<TensorView> rotary_PH;  ///< of each block one of them; absent where it turns nothing
};

/// Takes it all. @param host  needed only if shape.keeps_on_host()
StageMemory lay_out(const StageShape& shape, device::Arena& arena, device::Arena* host);

}  // namespace fourfold::model
