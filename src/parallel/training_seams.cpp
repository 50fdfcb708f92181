// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/parallel/training_seams.hpp>

#include <algorithm>
#include <numeric>
#include <vector>

namespace fourfold::parallel {
namespace {

/// This rank's neighbours of the same group, or the ranks with its place in all groups.
std::unique_ptr<comm::Communicator> subgroup_of(comm::Communicator& plane, int first, int step,
                                                int count, const char* name) {
  std::vector<int> members(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    members[static_cast<std::size_t>(i)] = first + i * step;
  }
  return plane.subgroup(members, name);
}

/// All ranks when nothing is sharded.
int group_size(const comm::Communicator& plane, const ZeroOptions& zero) {
  return zero.shard_ranks == 1 ? plane.size() : zero.shard_ranks;
}

std::unique_ptr<comm::Communicator> group_of(comm::Communicator& plane, const ZeroOptions& zero) {
  const int size = group_size(plane, zero);
  FOURFOLD_EXPECT(plane.size() % size == 0);
  return subgroup_of(plane, plane.rank() / size * size, 1, size, "zero");
}

std::unique_ptr<comm::Communicator> replicas_of(comm::Communicator& plane,
                                                const ZeroOptions& zero) {
  const int size = group_size(plane, zero);
  return subgroup_of(plane, plane.rank() % size, size, plane.size() / size, "zero.replicas");
}

/// The ranks of the pp axis that hold the tied embedding, for those that do; others alone.
std::unique_ptr<comm::Communicator> tie_of(const StageLayout& stages, comm::Communicator& pp,
                                           const model::Parameters& parameters) {
  std::vector<int> members{pp.rank()};
  if (stages.tied && parameters.find(model::token_embedding_name) != nullptr) {
    members = stages.token_embedding_holders();
  }
  return pp.subgroup(members, "pp.tied");
}

std::size_t segment_of(const model::Parameters& parameters, Range flat) {
  const std::vector<model::Segment>& segments = parameters.layout().segments;
  const auto found = std::ranges::find_if(segments, [&](const model::Segment& segment) {
    return segment.flat.begin <= flat.begin && flat.end() <= segment.flat.end();
  });
  FOURFOLD_EXPECT(found != segments.end());
  return static_cast<std::size_t>(found - segments.begin());
}

}  // namespace

ReductionPlan TrainingSeams::reduction_plan(const State& state, comm::Mesh& mesh,
                                            const ZeroOptions& zero) {
  return {.group = group_.get(),
          .replicas = replicas_.get(),
          .parameters = &state.parameters,
          .share = &state.share,
          .layout = &state.layout,
          .finishing_units = state.stages.finishing_units(mesh.coordinate().pp),
          .bucket_bytes = zero.bucket_bytes};
}

TrainingSeams::TrainingSeams(const State& state, comm::Mesh& mesh,
                             const TensorParallelOptions& tensor,
                             const ContextParallelOptions& context, const ZeroOptions& zero,
                             device::Arena& arena)
    : MeshSeams(mesh, tensor, context, arena),
      group_(group_of(mesh.data_plane(), zero)),
      replicas_(replicas_of(mesh.data_plane(), zero)),
      replica_sums_(state.config, mesh.axis(comm::Axis::tp), state.parameters,
                    tensor.sequence_parallel),
      each_micro_batch_(zero.reduce_each_micro_batch),
      reduction_(each_micro_batch_
                     ? reduce_each_micro_batch(reduction_plan(state, mesh, zero), arena)
                     : reduce_each_step(reduction_plan(state, mesh, zero))),
      gathering_(*group_, state.parameters, state.share, state.layout),
      tie_(tie_of(state.stages, mesh.axis(comm::Axis::pp), state.parameters)) {
  if (tie_->size() > 1) {
    const Range flat = state.parameters.at(model::token_embedding_name).flat;
    tied_segment_ = segment_of(state.parameters, flat);
    const ParameterShare::Run* const run = state.share.find(tied_segment_);
    tied_gradient_ = run == nullptr ? TensorView() : run->gradient;
  }
}

void TrainingSeams::weights_needed(int unit, device::StreamRef stream) {
  gathering_.needed(unit, stream);
}

void TrainingSeams::weights_done(int unit, device::StreamRef stream) {
  gathering_.done(unit, stream);
}

void TrainingSeams::weights_ahead(int unit) {
  gathering_.ahead(unit);
}

void TrainingSeams::gradients_needed(int unit, device::StreamRef stream) {
  reduction_->needed(unit, stream);
}

void TrainingSeams::gradients_ready(int unit, model::Gradients state, device::StreamRef stream) {
  const bool complete = state == model::Gradients::complete;
  if (complete || each_micro_batch_) {
    replica_sums_.sum_matrices(unit, stream);
  }
  if (complete) {
    replica_sums_.sum_vectors(unit, stream);
  }
  reduction_->ready(unit, state, stream);
}

void TrainingSeams::begin_step(device::StreamRef stream) {
  reduction_->begin_step(stream);
}

void TrainingSeams::finish_gradients(device::StreamRef stream) {
  reduction_->finish(stream);
}

void TrainingSeams::wait_gradients(std::size_t segment, device::StreamRef stream) {
  reduction_->wait(segment, stream);
  // Last, so that both copies are the same bits on every rank of the data plane.
  if (tied_gradient_ && segment == tied_segment_) {
    tie_->all_reduce(tied_gradient_, comm::ReduceOp::sum, stream).wait(stream);
  }
}

void TrainingSeams::weights_updated(std::size_t segment, device::StreamRef stream) {
  gathering_.updated(segment, stream);
}

}  // namespace fourfold::parallel
