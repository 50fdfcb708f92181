// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// A contiguous range of a model's units on one device: what a pipeline rank owns. One stage with
/// all units is the whole model. Legend: B sequences, T tokens of each held here, N = B * T rows, R
/// rows of the residual stream (ParallelHooks::residual_rows), D hidden, V vocabulary columns held
/// here.
#pragma once

#include <fourfold/base/box.hpp>
#include <fourfold/base/tensor_view.hpp>
#include <fourfold/device/arena.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/model/architecture.hpp>
#include <fourfold/model/batch.hpp>
#include <fourfold/model/parallel_hooks.hpp>
#include <fourfold/model/parameters.hpp>
#include <fourfold/model/recompute.hpp>

#include <cstdint>
#include <memory>
#include <span>

namespace fourfold::model {

struct StageOptions {
  std::int64_t sequences = 1;  ///< B, the most of one micro-batch
  std::int64_t tokens = 1;     ///< T, the most of one sequence on this rank
  int slots = 1;  ///< micro-batches in flight (pipelines); each has its own activations
  /// evaluate: activations of one block only, no gradients
  enum class Purpose : std::uint8_t { train, evaluate } purpose = Purpose::train;
  /// fused: backward() only. split: backward_input() and backward_weight() too, which costs the
  /// gradients of all products per slot (needed by schedules that delay the weight part).
  enum class Backward : std::uint8_t { fused, split } backward = Backward::fused;
  /// train: what each slot keeps of a block; losses, gradients and weights have the same bits
  Recompute recompute = {};
  /// Above 1: logits and loss are made for 1 / head_chunks of the rows at a time, in memory that
  /// all slots share, and in training not before the backward pass
  int head_chunks = 1;
  /// Whether the parameters are in tiles (FlatLayout): 16-bit training then adds input gradients up
  /// in f32
  bool tiles = false;
  /// train: what slots keep of blocks lies in host memory between the passes, and is moved beside
  /// the computation; the same bits
  bool activations_on_host = false;
  std::int64_t seed = 0;                ///< of the run, for dropout
  bool deterministic_attention = true;  ///< kernels::AttentionShape::deterministic
};

/// This rank's part of the sizes that tensor parallelism cuts.
struct LocalSizes {
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t ffn = 0;
  Range vocab_rows;  ///< of embedding.token.weight and lm_head.weight
  friend bool operator==(const LocalSizes&, const LocalSizes&) = default;
};
/// Reads them off the boxes. Sizes of tensors that are not in the table are the whole model's.
LocalSizes local_sizes(const Architecture& config, std::span<const ParameterSpec> table,
                       std::span<const Box> boxes);

/// Runs a range of units forward and backward. Everything is enqueued on the given stream; nothing
/// allocates after construction; the same calls give the same bits.
///
/// Per slot: forward_train, then backward (or backward_input, later backward_weight), then the slot
/// is free for the next micro-batch. Slots are independent.
///
/// With options.activations_on_host the memory of blocks is in turn: two blocks' worth of what is
/// kept (every:K: of K + 1 blocks), and two inputs. It is written back after the forward pass of
/// the next block, and brought one block ahead of the backward pass, on a stream of the stage's
/// own. All calls then have to be given the same stream. The first block's input, the last one's
/// output and its gradient, and what the head keeps, stay: messages and the head go on from there.
class Stage {
 public:
  /// @param config      resolved
  /// @param units       which units; [all_units] for the whole model
  /// @param parameters  those of `units` (parameter_table(config, units)); borrowed
  /// @param hooks       borrowed
  /// @param arena       owns the memory; must outlive this. One that counts gets a stage that only
  ///                    shows what it takes
  /// @param host        likewise in host memory; needed with options.activations_on_host
  /// @throws UserError (config) as validate_for_device()
  Stage(const Architecture& config, UnitRange units, const Parameters& parameters,
        ParallelHooks& hooks, device::Arena& arena, const StageOptions& options,
        device::Arena* host = nullptr);
  ~Stage();
  Stage(Stage&&) noexcept;
  Stage& operator=(Stage&&) noexcept;

  bool has_embedding() const noexcept;
  bool has_head() const noexcept;

  /// Whether a training pass knows loss(slot) only after backward() or backward_input(): the head
  /// is here, in chunks.
  bool finds_loss_backward() const noexcept;

  /// Forward with dropout, keeping what backward needs. With the head: loss(slot) is set, and the
  /// logits become gradient_scale * d loss / d logits; unless finds_loss_backward().
  /// @param gradient_scale  1 / (number of valid targets of the whole global batch) times the loss
  ///                        scale; ignored without the head
  void forward_train(int slot, const Batch& batch, float gradient_scale, device::StreamRef stream);

  /// Forward without dropout. With the head: loss(slot) is set, and logits(slot) unless it is in
  /// chunks. A stage made for training may do it in any slot that waits for no backward pass.
  void forward_evaluate(int slot, const Batch& batch, device::StreamRef stream);

  /// Forward without dropout of batch (targets not needed), and the logits of one row alone: for
  /// sampling text. @pre this stage has all units
  /// @return in the compute dtype [1, V], valid until the next call of any forward
  TensorView predict(const Batch& batch, std::int64_t row, device::StreamRef stream);

  /// Gradients of inputs and weights, unit by unit: ParallelHooks::gradients_ready(unit) comes as
  /// soon as a unit is done. Weight gradients are added to what is there.
  void backward(int slot, Gradients state, device::StreamRef stream);

  /// The two halves of backward(), for schedules that delay the second. Gradients of norms are
  /// added by the first half, and those of a head in chunks, whose logits do not stay.
  /// @pre options.backward == split
  void backward_input(int slot, device::StreamRef stream);
  void backward_weight(int slot, Gradients state, device::StreamRef stream);

  /// R of a micro-batch: how many rows of the residual stream this rank holds.
  std::int64_t residual_rows(const Batch& batch) const;

  /// [R, D], compute dtype. Without unit 0 input(slot) is filled (received) before forward_*.
  /// output(slot) is the residual stream after the last block, what the next stage needs.
  TensorView input(int slot) const;
  TensorView output(int slot) const;
  /// [R, D]. Without the head output_gradient(slot) is filled (received) before backward.
  /// input_gradient(slot) is set by backward and backward_input; the two are the same memory.
  TensorView output_gradient(int slot) const;
  TensorView input_gradient(int slot) const;

  /// f32 [N]: per row, 0 for ignored targets. @pre has_head()
  TensorView loss(int slot) const;
  /// [N, V], compute dtype: logits after forward_evaluate, their gradient after forward_train.
  /// @pre has_head(), options.head_chunks == 1
  TensorView logits(int slot) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fourfold::model
