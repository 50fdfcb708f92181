// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/device/buffer.hpp>
#include <fourfold/kernels/optimizer.hpp>
#include <fourfold/kernels/reduction.hpp>
#include <fourfold/parallel/replica_sums.hpp>
#include <fourfold/train/gradient_norm.hpp>

namespace fourfold::train {

using device::MemoryUse;

namespace {

/// Of all elements whose gradients this rank counts, those that it counts: each logical element is
/// counted once over the mesh. What is whole on every rank is cut as ZeRO would, so that the norm
/// has the same bits.
std::vector<TensorView> counted_gradients(const model::Parameters& parameters,
                                          const parallel::ParameterShard& share,
                                          const comm::Mesh& mesh,
                                          const parallel::ZeroOptions& zero) {
  const int ranks = zero.shard_ranks == 1 ? zero.sum_ranks : zero.shard_ranks;
  const int index = parallel::data_plane_index(mesh.shape(), mesh.coordinate()) % ranks;
  const parallel::ShardLayout shards = parallel::make_layout(parameters, ranks);
  const std::vector<Range> counted =
      parallel::counted_once(parameters, mesh.shape().tp, mesh.coordinate().tp);
  std::vector<TensorView> gradients;
  for (const parallel::ParameterShard::Run& run : share.runs()) {
    if (run.group == model::OptimizerGroup::frozen) {
      continue;
    }
    const Range mine = shards.share(run.segment, index);
    for (const Range& range : counted) {
      const Range part = intersection(intersection(range, mine), run.flat);
      if (part.count > 0) {
        gradients.push_back(run.gradient.rows(part.begin - run.flat.begin, part.count));
      }
    }
  }
  return gradients;
}

TensorView scalar(DType dtype, device::Arena& arena) {
  return arena.take(MemoryUse::workspace, dtype, {1});
}

}  // namespace

GradientNorm::GradientNorm(const ResolvedRun& run, const model::Parameters& parameters,
                           const parallel::ParameterShard& share, comm::Mesh& mesh,
                           device::Arena& arena)
    : clip_norm_(static_cast<float>(run.config.optim.clip_norm)),
      has_loss_scale_(run.config.train.precision == DType::f16),
      local_(run.trains_locally),
      mesh_(&mesh),
      counted_(counted_gradients(parameters, share, mesh, run.zero)),
      sum_of_squares_(scalar(DType::f64, arena)),
      norm_(scalar(DType::f32, arena)),
      scale_(scalar(DType::f32, arena)) {}

void GradientNorm::find(comm::Communicator& shard_group, double loss_scale,
                        device::StreamRef stream) {
  device::zero(sum_of_squares_.data(), sum_of_squares_.bytes(), stream);
  for (const TensorView& gradient : counted_) {
    kernels::sum_of_squares(gradient, sum_of_squares_, true, stream);
  }
  for (comm::Communicator* const ranks :
       {&shard_group, &mesh_->axis(comm::Axis::tp), &mesh_->axis(comm::Axis::pp)}) {
    if (ranks->size() > 1) {
      ranks->all_reduce(sum_of_squares_, comm::ReduceOp::sum, stream).wait(stream);
    }
  }
  kernels::clip_scale(sum_of_squares_, clip_norm_, static_cast<float>(loss_scale), norm_, scale_,
                      stream);
  if (local_) {
    agree(stream);
  }
}

void GradientNorm::agree(device::StreamRef stream) {
  reduction_ = mesh_->axis(comm::Axis::dp).all_reduce(norm_, comm::ReduceOp::avg, stream);
  if (has_loss_scale_) {
    reduction_.wait(stream);
    reduction_ = comm::Work{};
    kernels::void_scale(norm_, scale_, stream);
  }
}

float GradientNorm::found(device::StreamRef stream) {
  reduction_.wait(stream);
  reduction_ = comm::Work{};
  float norm = 0;
  device::copy(&norm, norm_.data(), sizeof norm, stream);
  stream.synchronize();
  return norm;
}

double GradientNorm::sum_of_squares(std::span<const TensorView> views,
                                    device::StreamRef stream) const {
  device::zero(sum_of_squares_.data(), sum_of_squares_.bytes(), stream);
  for (const TensorView& view : views) {
    kernels::sum_of_squares(view, sum_of_squares_, true, stream);
  }
  double sum = 0;
  device::copy(&sum, sum_of_squares_.data(), sizeof sum, stream);
  stream.synchronize();
  return sum;
}

}  // namespace fourfold::train
