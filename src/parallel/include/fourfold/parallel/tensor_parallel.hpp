// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The tp axis inside a step. Legend: T rows of a micro-batch, R of them held by this rank, D
/// hidden, V vocabulary columns held here.
///
/// Plain tensor parallelism (Shoeybi et al., 2019): every rank holds all rows, and sums over ranks
/// are all_reduces. With sequence parallelism (Korthikanti et al., 2022) the residual stream, its
/// norms and its dropout are cut by rows, each sum is a reduce_scatter and each use of all rows an
/// all_gather: 1/tp of the memory, and the bytes of a forward pass are the same. The backward pass
/// gathers what the weight gradients need again, beside other work: of a block's activations and
/// its gradients, (tp - 1) T D / tp elements each, a rank sends per micro-batch
///
///   plain                               8  (four all_reduces)
///   sequence parallel                  10  (two of them beside a product)
///   sequence parallel, split backward  12  (four)
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/comm/work.hpp>
#include <fourfold/device/arena.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/model/parallel_hooks.hpp>
#include <fourfold/parallel/collective_recorder.hpp>

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <vector>

namespace fourfold::parallel {

/// Memory of a run's arena that a communicator reads or writes in its steps. Numbers of their own,
/// such as the loss, are too small to be among it.
struct MovedMemory {
  comm::Communicator* by = nullptr;  ///< borrowed
  device::MemoryUse use = device::MemoryUse::communication;
  friend bool operator==(const MovedMemory&, const MovedMemory&) = default;
};

/// In the same order on all ranks of each communicator. What is there twice is meant once, if it is
/// one object that moves it: one that passes calls on to another counts for itself, and registers
/// with the other again what that has already.
using MovedMemories = std::vector<MovedMemory>;

inline void add_moved(MovedMemories& moved, comm::Communicator& by,
                      std::initializer_list<device::MemoryUse> uses) {
  for (const device::MemoryUse use : uses) {
    moved.push_back({&by, use});
  }
}

struct TensorParallelOptions {
  bool sequence_parallel = false;
  std::int64_t rows = 0;    ///< the most of one micro-batch: T
  std::int64_t hidden = 0;  ///< D
  DType compute = DType::f32;
};

/// The hooks on the tp axis. Collective over it. With one rank nothing is sent or copied.
class TensorParallel : public model::ParallelHooks {
 public:
  /// Takes what it needs from `arena`: two buffers of T x D with sequence parallelism, four numbers
  /// per row and rank for the loss. @param tp  borrowed
  TensorParallel(comm::Communicator& tp, const TensorParallelOptions& options,
                 device::Arena& arena);

  Range residual_rows(std::int64_t rows) const override;
  bool adds_once() const override { return tp_->rank() == 0; }
  ConstTensorView gather_rows(ConstTensorView x_RD, std::int64_t rows,
                              device::StreamRef stream) override;
  void prefetch_rows(ConstTensorView x_RD, std::int64_t rows, device::StreamRef stream) override;
  void reduce_rows(TensorView partial_TD, TensorView y_RD, device::StreamRef stream) override;
  void cross_entropy(model::VocabularyPart part, TensorView logits_TV, ConstTensorView target_T,
                     TensorView loss_T, std::optional<float> gradient_scale,
                     device::StreamRef stream) override;

  /// Notes what goes over the axis from here on. @param recorder  borrowed; or nullptr
  void record_into(CollectiveRecorder* recorder) noexcept { tp_->record_into(recorder); }
  /// Rows are where the model computes them, or gathered in buffers.
  MovedMemories moved_memory() const;

 protected:
  /// The tp axis, recorded.
  comm::Communicator& tp() noexcept { return *tp_; }

 private:
  bool alone() const { return tp_->size() == 1; }
  bool cuts_rows() const { return sequence_parallel_ && !alone(); }
  /// Elements of each rank's rows in counts_.
  void count_rows(std::int64_t rows, std::int64_t features);
  comm::Work start_gather(ConstTensorView x_RD, TensorView all_TD, device::StreamRef stream);

  std::unique_ptr<RecordedCommunicator> tp_;
  bool sequence_parallel_;
  TensorView gathered_TD_;  ///< of gather_rows
  TensorView ahead_TD_;     ///< of prefetch_rows, until its gather_rows swaps the two
  const void* ahead_of_ = nullptr;
  comm::Work ahead_;
  TensorView statistics_;     ///< f32, tp x T x 3: of the loss
  TensorView normaliser_T2_;  ///< f32
  std::vector<std::int64_t> counts_;
};

}  // namespace fourfold::parallel
