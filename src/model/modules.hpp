// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The three kinds of units that a stage is made of. They own no memory and keep no state between
/// calls: activations and scratch come with each call. All of them meet other ranks through
/// ParallelHooks only.
#pragma once

#include "layers.hpp"
#include "micro_batch_context.hpp"
#include "stage_memory.hpp"

#include <fourfold/base/box.hpp>
#include <fourfold/base/tensor_view.hpp>
#include <fourfold/kernels/attention.hpp>
#include <fourfold/kernels/dropout.hpp>
#include <fourfold/model/parallel_hooks.hpp>

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace fourfold::model {

/// When the weight gradients of a unit are added: by backward itself, or later by backward_weight.
enum class WeightGradients : std::uint8_t { now, later };

/// All rows of x; those of `then` (may be absent) are begun after it, to be asked for next.
/// Valid until then.
ConstTensorView gather_then_prefetch(ParallelHooks& hooks, ConstTensorView x_RD,
                                     ConstTensorView then_RD, std::int64_t rows,
                                     device::StreamRef stream);

/// Token embedding, and learned positions where a model has them.
class Embedding {
 public:
  Embedding(const StageShape& shape, const Parameters& parameters, ParallelHooks& hooks);

  /// y = dropout(token rows + position rows)
  void forward(const MicroBatchContext& pass, const Scratch& scratch, TensorView y_RD,
               device::StreamRef stream) const;
  /// dy = gradient in front of the dropout. In place.
  void backward_input(const MicroBatchContext& pass, TensorView dy_RD,
                      device::StreamRef stream) const;
  void backward_weight(const MicroBatchContext& pass, ConstTensorView dy_RD,
                       device::StreamRef stream) const;

 private:
  /// The sum of both kinds of rows that this rank has to add.
  void look_up(const MicroBatchContext& pass, TensorView partial_ND,
               device::StreamRef stream) const;
  void look_up_in_tiles(const MicroBatchContext& pass, TensorView partial_ND,
                        device::StreamRef stream) const;

  const Parameter* token_;
  const Parameter* position_;  // nullptr where none are learned
  std::vector<Tile> token_tiles_;
  std::vector<Tile> position_tiles_;
  std::int64_t layers_;
  ParallelHooks& hooks_;
};

/// One pre-norm transformer block: x += attention(norm(x)); x += mlp(norm(x)).
class Block {
 public:
  Block(const StageShape& shape, int layer, const Parameters& parameters, ParallelHooks& hooks);

  /// @param output_RD  residual stream after the block, not an activation of this block; absent:
  ///   the pass is for the activations, and ends with the last of them
  void forward(const MicroBatchContext& pass, const BlockActivations& kept, const Scratch& scratch,
               ConstTensorView rotary_PH, TensorView output_RD, device::StreamRef stream) const;

  /// Makes norms, attention and activation again from the products of an earlier forward pass.
  void recompute(const MicroBatchContext& pass, const BlockActivations& kept,
                 const Scratch& scratch, ConstTensorView rotary_PH, device::StreamRef stream) const;

  /// dresidual: gradient after the block in, in front of it out. Uses up kept.up_NU (swiglu).
  void backward(const MicroBatchContext& pass, const BlockActivations& kept,
                const ProductGradients& gradients, const Scratch& scratch,
                ConstTensorView rotary_PH, TensorView dresidual_RD, WeightGradients when,
                device::StreamRef stream) const;
  /// The second half of backward(..., later): needs its activations and gradients unchanged.
  /// Each gather of rows goes on beside the product before it.
  /// @param next_RD  what will be gathered first after this (of the block before), or absent
  void backward_weight(const BlockActivations& kept, const ProductGradients& gradients,
                       ConstTensorView next_RD, device::StreamRef stream) const;

 private:
  /// Places of q, k, v in the rows of the fused product (or of its gradient).
  template <class Pointer>
  struct Fused {
    kernels::BasicHeads<Pointer> q, k, v;
  };
  template <class Pointer>
  Fused<Pointer> split(Pointer qkv, DType dtype, const MicroBatchContext& pass) const;
  /// What attention reads of what is kept, where rotary positions are turned in place; with qk_norm
  /// queries and keys are normed and turned in the scratch memory, whenever they are needed.
  Fused<const void*> attention_inputs(const MicroBatchContext& pass, const BlockActivations& kept,
                                      const Scratch& scratch, ConstTensorView rotary_PH,
                                      device::StreamRef stream) const;
  /// Of the gradients of attention_inputs() those of the product.
  void backward_inputs(const MicroBatchContext& pass, const BlockActivations& kept,
                       const Scratch& scratch, ConstTensorView rotary_PH,
                       const Fused<void*>& gradients, device::StreamRef stream) const;
  /// Queries, or keys, of a block with qk_norm: where they are and which norm they pass.
  struct NormedHeads {
    const Norm& norm;
    kernels::Heads product;  ///< in the fused product, or in its gradient
    std::int64_t heads;
    std::int64_t first_head;  ///< in Scratch::normed and Scratch::rstd
  };
  std::array<NormedHeads, 2> normed_heads(const Fused<void*>& product) const;
  /// Rows of heads close together, [N * heads, H], in `memory` from that head on.
  TensorView rows_of(const NormedHeads& heads, TensorView memory, std::int64_t first_head,
                     const MicroBatchContext& pass) const;
  kernels::Heads dense(const NormedHeads& heads, const TensorView& rows,
                       const MicroBatchContext& pass) const;
  kernels::HeadRows sizes_of(const NormedHeads& heads, const MicroBatchContext& pass) const;
  TensorView rstd_of(const NormedHeads& heads, const Scratch& scratch,
                     const MicroBatchContext& pass) const;
  kernels::ConstHeads attended(ConstTensorView rows_NA, const MicroBatchContext& pass) const;
  kernels::AttentionShape attention_shape(const MicroBatchContext& pass) const;
  void rotate(const Fused<void*>& heads, const MicroBatchContext& pass, ConstTensorView rotary_PH,
              bool inverse, device::StreamRef stream) const;

  /// To who observes products: whose attention comes next.
  void say_where() const;
  void attend(const MicroBatchContext& pass, const BlockActivations& kept, const Scratch& scratch,
              ConstTensorView rotary_PH, device::StreamRef stream) const;
  void activate(const BlockActivations& kept, device::StreamRef stream) const;
  /// The mlp's first product, and activate().
  void up_and_activate(ConstTensorView x_ND, const BlockActivations& kept,
                       device::StreamRef stream) const;
  /// y = sum over ranks of x w^T: what both branches add to the residual stream.
  void branch(const Linear& product, ConstTensorView x, const MicroBatchContext& pass,
              const Scratch& scratch, TensorView y_RD, device::StreamRef stream) const;
  /// The residual stream after attention, and its norm.
  void add_attention(const MicroBatchContext& pass, const BlockActivations& kept,
                     const Scratch& scratch, device::StreamRef stream) const;
  /// The gradient of a branch's end: dresidual itself, or in `kept` when that is a tensor.
  TensorView branch_gradient(TensorView dresidual_RD, TensorView kept, std::uint64_t dropout_site,
                             const MicroBatchContext& pass, device::StreamRef stream) const;
  /// Gradient of the norm's output after a column-split product.
  TensorView norm_gradient(const Linear& product, ConstTensorView dy, const MicroBatchContext& pass,
                           const Scratch& scratch, device::StreamRef stream) const;

  void backward_mlp(const MicroBatchContext& pass, const BlockActivations& kept,
                    const ProductGradients& gradients, const Scratch& scratch,
                    TensorView dresidual_RD, WeightGradients when, device::StreamRef stream) const;
  void backward_attention(const MicroBatchContext& pass, const BlockActivations& kept,
                          const ProductGradients& gradients, const Scratch& scratch,
                          ConstTensorView rotary_PH, TensorView dresidual_RD, WeightGradients when,
                          device::StreamRef stream) const;
  /// Whether the products beside the activation compute it too.
  bool has_fused_activation() const;
  /// Of the mlp's second product and, where it is not gated, the activation in front of it.
  void backward_down(ConstTensorView ddown_ND, const BlockActivations& kept,
                     const ProductGradients& gradients, const Scratch& scratch,
                     device::StreamRef stream) const;
  /// Output gradient of the mlp's first product, once its activation was turned back.
  TensorView up_gradient(const BlockActivations& kept, const ProductGradients& gradients) const;

  LayerTraits traits_;
  bool recomputes_;  ///< recompute() will be called, and has to make the same bits
  int layer_;
  LocalSizes sizes_;
  Norm attn_norm_;
  Linear qkv_;
  std::optional<Norm> q_norm_;  ///< with qk_norm
  std::optional<Norm> k_norm_;
  Linear out_;
  Norm mlp_norm_;
  Linear up_;
  Linear down_;
  ParallelHooks& hooks_;
};

/// Final norm, language-model head, loss. Either with the logits of all rows, which stay from the
/// forward to the backward pass, or in chunks of rows: then a training forward pass ends with the
/// norm, and the backward pass makes the logits, loss and gradients of one chunk after the other,
/// so that no product is made twice.
class Head {
 public:
  Head(const StageShape& shape, const Parameters& parameters, ParallelHooks& hooks);

  /// The unit whose weights the product reads: the head's own, or 0 when tied on the same rank.
  int product_unit() const noexcept { return product_.unit(); }

  /// The norm alone.
  void normalise(ConstTensorView residual_RD, const HeadActivations& kept,
                 device::StreamRef stream) const;
  /// Norm and logits.
  void forward(const MicroBatchContext& pass, ConstTensorView residual_RD,
               const HeadActivations& kept, device::StreamRef stream) const;
  /// The loss of logits; with gradient_scale they become their gradient.
  void loss(const MicroBatchContext& pass, const HeadActivations& kept,
            std::optional<float> gradient_scale, device::StreamRef stream) const;
  /// dresidual is replaced.
  void backward_input(const MicroBatchContext& pass, ConstTensorView residual_RD,
                      const HeadActivations& kept, const Scratch& scratch, TensorView dresidual_RD,
                      device::StreamRef stream) const;
  /// Begins what backward_weight gathers, beside backward_input.
  void begin_weight(const HeadActivations& kept, device::StreamRef stream) const;
  /// @param next_RD  as Block::backward_weight
  void backward_weight(const HeadActivations& kept, ConstTensorView next_RD,
                       device::StreamRef stream) const;

  /// After normalise(): logits and loss, chunk by chunk, for evaluation.
  void loss_in_chunks(const MicroBatchContext& pass, const HeadActivations& kept,
                      device::StreamRef stream) const;
  /// After normalise(): logits, loss and all gradients, chunk by chunk. dresidual is replaced.
  void backward_in_chunks(const MicroBatchContext& pass, ConstTensorView residual_RD,
                          const HeadActivations& kept, const Scratch& scratch,
                          TensorView dresidual_RD, device::StreamRef stream) const;

 private:
  /// Makes the logits of each chunk, and calls use(rows, norm_CD, logits_CV) while they are there.
  /// There are as many chunks of a small batch as of a full one, the last ones without rows: ranks
  /// that gather tiles do so in step.
  template <class Use>
  void for_each_chunk(const MicroBatchContext& pass, const HeadActivations& kept,
                      device::StreamRef stream, const Use& use) const;
  void chunk_loss(Range rows, TensorView logits_CV, const MicroBatchContext& pass,
                  const HeadActivations& kept, std::optional<float> gradient_scale,
                  device::StreamRef stream) const;
  /// Where the gradient of the norm's output goes that ranks then sum.
  TensorView norm_gradient(const MicroBatchContext& pass, const Scratch& scratch) const;
  /// The gradient in front of the norm. dresidual is replaced.
  void backward_norm(const MicroBatchContext& pass, ConstTensorView residual_RD,
                     const HeadActivations& kept, const Scratch& scratch, TensorView dresidual_RD,
                     device::StreamRef stream) const;

  Norm norm_;
  Linear product_;
  VocabularyPart part_;
  std::int64_t rows_;  ///< of a full batch
  std::int64_t chunk_rows_;
  ParallelHooks& hooks_;
};

/// Where a product with all `rows` writes what ranks then sum into `target_RD`.
TensorView partial_of(TensorView target_RD, const MicroBatchContext& pass, const Scratch& scratch);

}  // namespace fourfold::model
