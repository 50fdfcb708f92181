// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/parallel/tensor_cut.hpp>
#include <fourfold/parallel/training_hooks.hpp>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

namespace fourfold::parallel {
namespace {

/// This rank's neighbours of the same group, or the ranks with its place in all groups.
std::unique_ptr<comm::Communicator> subgroup_of(comm::Communicator& plane, int first, int step,
                                                int count, const std::string& name) {
  std::vector<int> members(count);
  for (int i = 0; i < count; ++i) {
    members[i] = first + i * step;
  }
  return plane.subgroup(members, name);
}

int sum_ranks(const comm::Communicator& plane, const ZeroOptions& zero) {
  const int ranks = zero.sum_ranks == 0 ? plane.size() : zero.sum_ranks;
  FOURFOLD_EXPECT(plane.size() % ranks == 0 && ranks % zero.shard_ranks == 0);
  return ranks;
}

/// All that sum up when nothing is sharded.
int group_size(const comm::Communicator& plane, const ZeroOptions& zero) {
  return zero.shard_ranks == 1 ? sum_ranks(plane, zero) : zero.shard_ranks;
}

std::unique_ptr<comm::Communicator> group_of(comm::Communicator& plane, const ZeroOptions& zero) {
  const int size = group_size(plane, zero);
  return subgroup_of(plane, plane.rank() / size * size, 1, size,
                     zero.shard_ranks == 1 ? plane.name() : "zero");
}

std::unique_ptr<comm::Communicator> replicas_of(comm::Communicator& plane,
                                                const ZeroOptions& zero) {
  const int size = group_size(plane, zero);
  const int together = sum_ranks(plane, zero);
  const int first = plane.rank() / together * together + plane.rank() % size;
  return subgroup_of(plane, first, size, together / size, "replicas");
}

/// The ranks of the pp axis that hold the tied embedding, for those that do; others alone.
std::unique_ptr<comm::Communicator> tie_of(const schedule::StageLayout& stages,
                                           comm::Communicator& pp,
                                           const model::Parameters& parameters) {
  std::vector<int> members{pp.rank()};
  if (stages.tied && parameters.find(model::token_embedding_name) != nullptr) {
    members = stages.token_embedding_holders();
  }
  return pp.subgroup(members, "pp.tied");
}

std::unique_ptr<ErrorFeedback> errors_of(const TrainingHooks::State& state,
                                         const comm::Communicator& plane,
                                         const CompressionOptions& compression,
                                         device::Arena& arena) {
  if (!compression.keeps_errors(plane.size())) {
    return nullptr;
  }
  return std::make_unique<ErrorFeedback>(state.parameters,
                                         make_layout(state.parameters, plane.size()),
                                         compression.steps_may_skip, arena);
}

}  // namespace

ReductionPlan TrainingHooks::reduction_plan(const State& state, const ZeroOptions& zero) const {
  return {.group = group_.get(),
          .replicas = replicas_.get(),
          .plane = plane_.get(),
          .parameters = &state.parameters,
          .share = &state.share,
          .layout = &state.layout,
          .finishing_units = state.stages.finishing_units(mesh_->coordinate().pp),
          .bucket_bytes = zero.bucket_bytes};
}

std::unique_ptr<GradientReduction> TrainingHooks::make_reduction(
    const State& state, const ZeroOptions& zero, const CompressionOptions& compression,
    device::Arena& arena) {
  const ReductionPlan plan = reduction_plan(state, zero);
  if (errors_) {
    FOURFOLD_EXPECT(!each_micro_batch_);
    FOURFOLD_EXPECT(sum_ranks(*plane_, zero) == plane_->size());
    const int tp = mesh_->shape().tp;
    return reduce_compressed(
        plan, compression,
        [&](const model::Parameter& matrix) {
          const TensorShard shard = tensor_shard(matrix.spec, tp, mesh_->coordinate().tp);
          return shard.holders.count == 1                 ? Copies::none
                 : blocks_are_cut_alike(state.config, tp) ? Copies::alike
                                                          : Copies::unlike;
        },
        *errors_, arena);
  }
  return each_micro_batch_ ? reduce_each_micro_batch(plan, arena) : reduce_each_step(plan);
}

TrainingHooks::TrainingHooks(const State& state, comm::Mesh& mesh,
                             const TensorParallelOptions& tensor,
                             const ContextParallelOptions& context, const ZeroOptions& zero,
                             const CompressionOptions& compression, device::Arena& arena)
    : MeshHooks(mesh, tensor, context, arena),
      mesh_(&mesh),
      plane_(std::make_unique<RecordedCommunicator>(mesh.data_plane())),
      group_(std::make_unique<RecordedCommunicator>(group_of(mesh.data_plane(), zero))),
      replicas_(std::make_unique<RecordedCommunicator>(replicas_of(mesh.data_plane(), zero))),
      replica_sums_(tp(), state.parameters, tensor.sequence_parallel),
      gathers_weights_(state.layout.ranks() > 1),
      takes_turns_(zero.gather_each_unit || zero.reduce_each_micro_batch),
      each_micro_batch_(zero.reduce_each_micro_batch),
      errors_(errors_of(state, mesh.data_plane(), compression, arena)),
      reduction_(make_reduction(state, zero, compression, arena)),
      gathering_(*group_, state.parameters, state.share, state.layout),
      tie_(std::make_unique<RecordedCommunicator>(
          tie_of(state.stages, mesh.axis(comm::Axis::pp), state.parameters))) {
  const std::vector<model::Segment>& segments = state.parameters.layout().segments;
  tied_gradients_.resize(segments.size());
  for (std::size_t i = 0; tie_->size() > 1 && i < segments.size(); ++i) {
    const Range flat = state.parameters.at(model::token_embedding_name).flat;
    if (intersection(segments[i].flat, flat).count > 0) {
      tied_segments_.push_back(i);
      const ParameterShard::Run* const run = state.share.find(i);
      tied_gradients_[i] = run == nullptr ? TensorView() : run->gradient;
    }
  }
}

MovedMemories TrainingHooks::moved_memory() const {
  using device::MemoryUse;
  MovedMemories moved = MeshHooks::moved_memory();
  const auto add_sums = [&](comm::Communicator& by, bool through_buffers) {
    add_moved(moved, by, {MemoryUse::gradients});
    if (through_buffers) {
      add_moved(moved, by, {MemoryUse::communication});
    }
  };
  const bool compresses = errors_ != nullptr;
  if (gathers_weights_) {
    add_moved(moved, *group_, {MemoryUse::weights});
  }
  add_sums(*group_, takes_turns_ || compresses);
  add_sums(*replicas_, compresses);
  if (compresses) {
    add_sums(*plane_, true);
  }
  for (comm::Communicator* const holders : replica_sums_.holders()) {
    add_sums(*holders, takes_turns_);
  }
  add_sums(*tie_, false);
  return moved;
}

void TrainingHooks::record_into(CollectiveRecorder* recorder) noexcept {
  MeshHooks::record_into(recorder);
  replica_sums_.record_into(recorder);
  plane_->record_into(recorder);
  group_->record_into(recorder);
  replicas_->record_into(recorder);
  tie_->record_into(recorder);
}

void TrainingHooks::gradients_ready(model::WeightGroup part, model::Gradients state,
                                    device::StreamRef stream) {
  const bool complete = state == model::Gradients::complete;
  if (each_micro_batch_) {
    replica_sums_.sum_matrices(part, stream);
  } else if (complete) {
    replica_sums_.sum_matrices_of_unit(part.unit, stream);
  }
  if (complete) {
    replica_sums_.sum_vectors(part.unit, stream);
  }
  reduction_->ready(part, state, stream);
}

void TrainingHooks::begin_step(device::StreamRef stream, double loss_scale) {
  if (errors_) {
    errors_->begin_step(loss_scale);
  }
  reduction_->begin_step(stream);
}

void TrainingHooks::wait_gradients(std::size_t segment, device::StreamRef stream) {
  reduction_->wait(segment, stream);
  // Last, so that both copies are the same bits on every rank of the data plane.
  if (const TensorView& gradient = tied_gradients_[segment]) {
    tie_->all_reduce(gradient, comm::ReduceOp::sum, stream).wait(stream);
  }
}

void TrainingHooks::fold_errors(device::StreamRef stream) {
  if (!errors_) {
    return;
  }
  errors_->fold(*plane_, stream);
  for (const std::size_t segment : tied_segments_) {
    // Both stages cut it alike; the first one answers for it.
    const TensorView tied = errors_->share(segment, mesh_->data_plane().rank());
    tie_->all_reduce(tied, comm::ReduceOp::sum, stream).wait(stream);
    if (tie_->rank() > 0) {
      device::zero(tied.data(), tied.bytes(), stream);
    }
  }
  reduction_->forget(stream);
}

std::optional<std::vector<ErrorFeedback::Piece>> TrainingHooks::error_pieces() const {
  if (!errors_) {
    return std::nullopt;
  }
  std::vector<ErrorFeedback::Piece> pieces = errors_->pieces(mesh_->data_plane().rank());
  if (tie_->rank() > 0) {
    std::erase_if(pieces, [](const ErrorFeedback::Piece& piece) {
      return piece.parameter->spec.is_token_embedding();
    });
  }
  return pieces;
}

}  // namespace fourfold::parallel
