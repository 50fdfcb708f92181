// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/mesh.hpp>
#include <fourfold/device/arena.hpp>
#include <fourfold/model/architecture.hpp>
#include <fourfold/model/parameters.hpp>
#include <fourfold/parallel/collective_recorder.hpp>
#include <fourfold/parallel/error_feedback.hpp>
#include <fourfold/parallel/gradient_compression.hpp>
#include <fourfold/parallel/gradient_reduction.hpp>
#include <fourfold/parallel/mesh_hooks.hpp>
#include <fourfold/parallel/parameter_shard.hpp>
#include <fourfold/parallel/replica_sums.hpp>
#include <fourfold/parallel/tensor_parallel.hpp>
#include <fourfold/parallel/weight_gathering.hpp>
#include <fourfold/parallel/zero.hpp>
#include <fourfold/schedule/split_layers.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace fourfold::parallel {

/// The hooks of one rank of a mesh that trains: beside where activations meet, gradients are summed
/// first on the tp axis (where replicas hold addends), then over the data plane, and last, for a
/// tied embedding that two pipeline stages hold, between these two; and weights that ZeRO shards
/// are gathered.
class TrainingHooks : public MeshHooks {
 public:
  /// What the hooks work on; borrowed.
  struct State {
    const model::Architecture& config;
    const schedule::StageLayout& stages;  ///< of all ranks of the pp axis
    const model::Parameters& parameters;  ///< tensor_boxes(table, tp, rank)
    const ParameterShard& share;
    const ShardLayout& layout;  ///< of the share
  };
  /// Collective over the mesh, which is borrowed.
  TrainingHooks(const State& state, comm::Mesh& mesh, const TensorParallelOptions& tensor,
                const ContextParallelOptions& context, const ZeroOptions& zero,
                const CompressionOptions& compression, device::Arena& arena);

  void acquire_weights(model::WeightGroup part, device::StreamRef stream) override {
    gathering_.acquire(part, stream);
  }
  void release_weights(model::WeightGroup part, device::StreamRef stream) override {
    gathering_.release(part, stream);
  }
  void prefetch_weights(model::WeightGroup part) override { gathering_.prefetch(part); }
  void gradients_needed(model::WeightGroup part, device::StreamRef stream) override {
    reduction_->needed(part, stream);
  }
  /// Collective over the data plane. Units may become complete in another order than
  /// StageLayout::finishing_units; where they are summed once per step it is in that order.
  void gradients_ready(model::WeightGroup part, model::Gradients state,
                       device::StreamRef stream) override;

  /// Notes what goes over the axes, gathers of weights and sums of gradients from here on.
  /// @param recorder  borrowed; or nullptr
  void record_into(CollectiveRecorder* recorder) noexcept;

  /// Before the first micro-batch of a step.
  /// @param loss_scale  what its gradients will be too large by
  void begin_step(device::StreamRef stream, double loss_scale = 1);
  /// After the last one. Collective over the data plane, and over the ranks that share a tied
  /// embedding.
  void finish_gradients(device::StreamRef stream) { reduction_->finish(stream); }
  /// Orders `stream` after all sums of a segment: after it ParameterShard::Run::gradient has that
  /// of the global batch, the same bits on every rank that has it.
  void wait_gradients(std::size_t segment, device::StreamRef stream);
  /// The weights of this rank's share of a segment are new: others will want them.
  void weights_updated(std::size_t segment, device::StreamRef stream) {
    gathering_.updated(segment, stream);
  }

  /// Orders `stream` after all that still reads weights of this rank's share for others.
  void wait_weights(device::StreamRef stream) { gathering_.wait(stream); }

  /// Ends a step: tells whether it had any effect. @pre its work on the device is done
  void finish_step(bool applied) { reduction_->finish_step(applied); }

  /// What compression has left out so far, brought into the form that error_pieces() shows; what it
  /// keeps beside that begins anew, as in a restart. Collective over the mesh; may block the host.
  void fold_errors(device::StreamRef stream);
  /// The part that this rank answers for; nothing where nothing is compressed.
  std::optional<std::vector<ErrorFeedback::Piece>> error_pieces() const;
  /// Whether there is such a part on any rank: sums change it while they go on.
  bool keeps_errors() const noexcept { return errors_ != nullptr; }
  /// GradientReduction::sent_bytes()
  std::int64_t sent_gradient_bytes() const { return reduction_->sent_bytes(); }

  /// What moves of the arena on the axes, and where weights and gradients meet.
  MovedMemories moved_memory() const;

  /// The ranks among which each element of the parameters is in one share.
  comm::Communicator& shard_group() noexcept { return *group_; }

 private:
  ReductionPlan reduction_plan(const State& state, const ZeroOptions& zero) const;
  std::unique_ptr<GradientReduction> make_reduction(const State& state, const ZeroOptions& zero,
                                                    const CompressionOptions& compression,
                                                    device::Arena& arena);

  comm::Mesh* mesh_;
  std::unique_ptr<RecordedCommunicator> plane_;  ///< dp x cp
  std::unique_ptr<RecordedCommunicator> group_;
  std::unique_ptr<RecordedCommunicator> replicas_;
  ReplicaSums replica_sums_;
  bool gathers_weights_;
  bool takes_turns_;  ///< with weights or gradients, in buffers of communication
  bool each_micro_batch_;
  std::unique_ptr<ErrorFeedback> errors_;  ///< with compression, where there are ranks to send to
  std::unique_ptr<GradientReduction> reduction_;
  WeightGathering gathering_;
  std::unique_ptr<RecordedCommunicator> tie_;  ///< the two ranks that hold a tied embedding
  std::vector<std::size_t> tied_segments_;  ///< of an embedding that is a second copy, or has one
  std::vector<TensorView> tied_gradients_;  ///< by segment: of those, this rank's share
};

}  // namespace fourfold::parallel
