// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Where single-device model code meets other ranks. The model owns this interface; its default is
/// one rank and does nothing. Parallelism is an implementation of it (docs/adr/0004).
///
/// Legend: T rows (token positions of all sequences, flattened) as products see them; R rows of the
/// residual stream held by this rank (T, or T / tp under sequence parallelism); D hidden; V
/// vocabulary columns held here.
#pragma once

#include <fourfold/base/box.hpp>
#include <fourfold/base/tensor_view.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/kernels/attention.hpp>
#include <fourfold/model/matmul_observer.hpp>
#include <fourfold/model/parameter_table.hpp>

#include <cstdint>
#include <optional>

namespace fourfold::model {

/// Whether more micro-batches will add to a unit's gradients in this step.
enum class Gradients : std::uint8_t { partial, complete };

/// The columns of the logits that this rank holds, out of the whole vocabulary.
struct VocabularyPart {
  std::int64_t first_column = 0;
  std::int64_t vocabulary = 0;  ///< all columns of all ranks
};

/// What blocks call where ranks meet. Every call is made by all ranks that share the model's
/// layers, in the same order, with the same sizes, and is ordered on `stream`: nothing blocks the
/// host by contract. With StageOptions::recompute the calls of a block's forward pass, or a part of
/// them, come once more before those of its backward pass. Implementations take their buffers from
/// the arena before the first step. One thread per object.
class ParallelHooks {
 public:
  virtual ~ParallelHooks() = default;
  ParallelHooks() = default;
  ParallelHooks(const ParallelHooks&) = delete;
  ParallelHooks& operator=(const ParallelHooks&) = delete;

  /// From now on every product of the model is shown to `observer` (borrowed), those made for the
  /// hooks too; nullptr, as at first: to nobody. @pre no pass is recorded as a CUDA graph
  virtual void show_products_to(MatmulObserver* observer) { matmul_observer_ = observer; }
  MatmulObserver* matmul_observer() const noexcept { return matmul_observer_; }

  // -- rows and features: tensor and sequence parallelism -----------------------------------------

  /// Which of `rows` rows the residual stream of this rank holds. All: {0, rows}.
  virtual Range residual_rows(std::int64_t rows) const;

  /// Whether this rank adds what must enter a sum over ranks once: the bias of a row-split product,
  /// the position embedding next to a vocabulary-parallel token embedding.
  virtual bool adds_once() const;

  /// All T rows of an activation of which this rank holds R: before a column-split product in the
  /// forward pass, before the gradient of a row-split product in the backward pass.
  /// @param rows  T
  /// @return x itself when nothing is to do, else a buffer of the hooks, valid until the next
  ///   gather_rows
  virtual ConstTensorView gather_rows(ConstTensorView x_RD, std::int64_t rows,
                                      device::StreamRef stream);

  /// Says that gather_rows(x_RD, rows) will be asked for, perhaps after other gathers and sums: an
  /// implementation may begin it now, beside the work enqueued meanwhile. x_RD must stay as it is.
  virtual void prefetch_rows(ConstTensorView x_RD, std::int64_t rows, device::StreamRef stream);

  /// The sum over ranks of `partial`, or this rank's R rows of it: after a row-split product in the
  /// forward pass, after the gradient of a column-split product in the backward pass.
  /// @param partial_TD  this rank's addend; contents undefined afterwards unless it is y
  /// @param y_RD        the sum; the same memory as partial when this rank holds all rows
  virtual void reduce_rows(TensorView partial_TD, TensorView y_RD, device::StreamRef stream);

  // -- attention: context parallelism -------------------------------------------------------------

  /// kernels::attention over the heads and tokens held here. `shape` has this rank's sizes. lse_BNT
  /// is what an implementation keeps for its own backward pass, in an order of its own.
  virtual void attention(const kernels::AttentionShape& shape, kernels::ConstHeads q,
                         kernels::ConstHeads k, kernels::ConstHeads v, kernels::Heads out,
                         float* lse_BNT, device::StreamRef stream);
  virtual void attention_backward(const kernels::AttentionShape& shape, kernels::ConstHeads q,
                                  kernels::ConstHeads k, kernels::ConstHeads v,
                                  kernels::ConstHeads out, kernels::ConstHeads dout,
                                  const float* lse_BNT, float* delta_BNT, kernels::Heads dq,
                                  kernels::Heads dk, kernels::Heads dv, device::StreamRef stream);

  // -- loss: vocabulary parallelism ---------------------------------------------------------------

  /// Per-row cross-entropy as kernels::cross_entropy (and _forward_backward when gradient_scale is
  /// given: the logits become their gradient). loss_T is the same on all ranks that share the rows.
  virtual void cross_entropy(VocabularyPart part, TensorView logits_TV, ConstTensorView target_T,
                             TensorView loss_T, std::optional<float> gradient_scale,
                             device::StreamRef stream);

  // -- weights and gradients: ZeRO, data parallelism ----------------------------------------------
  //
  // All are called for whole units. Where the parameters are in tiles (FlatLayout), that means only
  // the vectors of the unit, and between these calls come those for its tiles, one after the other.

  /// Called before the weights of `part` are read, forward and backward; after it they must be
  /// where Parameters has them as far as `stream` can tell. Calls nest: with tied embeddings the
  /// head's unit also asks for unit 0. Segment::every_unit asks for the vectors alone, which come
  /// with every other part too.
  virtual void acquire_weights(WeightGroup part, device::StreamRef stream);
  /// Called after the last read of that pass over `part`.
  virtual void release_weights(WeightGroup part, device::StreamRef stream);
  /// Says that acquire_weights(part) will come next, while another part is computed: an
  /// implementation may begin to bring them now.
  virtual void prefetch_weights(WeightGroup part);

  /// Called before anything is added to the gradients of the matrices of `part`; those of vectors
  /// may be added to at any time of a step.
  virtual void gradients_needed(WeightGroup part, device::StreamRef stream);

  /// Called when a micro-batch has added all it adds to the gradients of a unit, within a stage
  /// from its last unit down. With tied embeddings the head's share of embedding.token.weight is
  /// part of unit 0 (where this rank has unit 0). A head in chunks adds its gradients in the first
  /// half of a split backward pass (partial), and the last second half adds nothing (complete).
  /// For a tile it is called after each addition, always with `partial`: its unit's call, which
  /// comes last, says whether it is complete.
  virtual void gradients_ready(WeightGroup part, Gradients state, device::StreamRef stream);

 private:
  MatmulObserver* matmul_observer_ = nullptr;
};

}  // namespace fourfold::model
