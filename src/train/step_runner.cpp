// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/device/buffer.hpp>
#include <fourfold/kernels/cast.hpp>
#include <fourfold/kernels/optimizer.hpp>
#include <fourfold/parallel/tensor_cut.hpp>
#include <fourfold/train/step_runner.hpp>

#include <algorithm>

namespace fourfold::train {

using device::MemoryUse;

model::StageOptions stage_options(const runfile::RunConfig& config, int cp) {
  return {.sequences = config.train.micro_batch,
          .tokens = config.model.context / cp,
          .recompute = config.train.recompute,
          .seed = static_cast<std::uint64_t>(config.train.seed)};
}

namespace {

parallel::ContextMode context_mode(const runfile::RunConfig& config) {
  switch (config.mesh.context_mode) {
    case runfile::ContextMode::ring:
      return parallel::ContextMode::ring;
    case runfile::ContextMode::ulysses:
      return parallel::ContextMode::ulysses;
    case runfile::ContextMode::allgather:
      break;
  }
  return parallel::ContextMode::allgather;
}

model::Parameters my_parameters(const runfile::RunConfig& config, const comm::Mesh& mesh,
                                device::Arena& arena) {
  const int tp = mesh.shape().tp;
  parallel::validate_tensor_cut(config.model, tp);
  parallel::validate_context_cut(config.model, context_mode(config), mesh.shape().cp, tp);
  const std::vector<model::ParameterSpec> table = model::parameter_table(config.model);
  return {table, parallel::tensor_boxes(config.model, table, tp, mesh.coordinate().tp),
          config.train.precision, arena};
}

parallel::TensorParallelOptions tensor_options(const runfile::RunConfig& config, int cp) {
  return {.sequence_parallel = config.mesh.sequence_parallel,
          .rows = config.train.micro_batch * (config.model.context / cp),
          .hidden = config.model.hidden,
          .compute = config.train.precision};
}

parallel::ContextParallelOptions context_options(const runfile::RunConfig& config,
                                                 const comm::MeshShape& mesh) {
  return {.mode = context_mode(config),
          .sequences = config.train.micro_batch,
          .tokens = config.model.context / mesh.cp,
          .heads = config.model.heads / mesh.tp,
          .kv_heads = std::max<std::int64_t>(1, config.model.kv_heads / mesh.tp),
          .head_dim = config.model.head_dim,
          .compute = config.train.precision};
}

}  // namespace

StepRunner::StepRunner(const runfile::RunConfig& config, comm::Mesh& mesh, device::Arena& arena)
    : clip_norm_(config.optim.clip_norm),
      mesh_(&mesh),
      parameters_(my_parameters(config, mesh, arena)),
      counted_(
          parallel::counted_once(config.model, parameters_, mesh.shape().tp, mesh.coordinate().tp)),
      seams_(config.model, mesh, parameters_, tensor_options(config, mesh.shape().cp),
             context_options(config, mesh.shape()), config.mesh.dp_bucket_mb, arena),
      stage_(config.model, model::all_units(config.model), parameters_, seams_, arena,
             stage_options(config, mesh.shape().cp)),
      optimizer_(config.optim, parameters_, arena),
      loss_sum_(arena.take(MemoryUse::workspace, DType::f64, {1})),
      sum_of_squares_(arena.take(MemoryUse::workspace, DType::f64, {1})),
      norm_(arena.take(MemoryUse::workspace, DType::f32, {1})),
      gradient_scale_(arena.take(MemoryUse::workspace, DType::f32, {1})) {}

void StepRunner::run(std::int64_t step, const StepBatches& batches, double lr,
                     device::StreamRef stream) {
  loss_reduction_ = comm::Work{};
  targets_ = batches.targets;
  accumulate_gradients(batches, stream);
  loss_reduction_ = mesh_->data_plane().all_reduce(loss_sum_, comm::ReduceOp::sum, stream);
  seams_.wait_all(stream);
  clip_and_update(step, lr, stream);
}

void StepRunner::accumulate_gradients(const StepBatches& batches, device::StreamRef stream) {
  parameters_.zero_gradients(stream);
  device::zero(loss_sum_.data(), loss_sum_.bytes(), stream);
  const float scale =
      batches.targets > 0 ? static_cast<float>(1.0 / static_cast<double>(batches.targets)) : 0.0F;
  for (std::size_t i = 0; i < batches.micro_batches.size(); ++i) {
    const bool last = i + 1 == batches.micro_batches.size();
    const model::Batch& batch = batches.micro_batches[i];
    stage_.forward_train(0, batch, scale, stream);
    kernels::sum(stage_.loss(0).rows(0, batch.sequences * batch.tokens), loss_sum_, true, stream);
    stage_.backward(0, last ? model::Gradients::complete : model::Gradients::partial, stream);
  }
}

void StepRunner::clip_and_update(std::int64_t step, double lr, device::StreamRef stream) {
  device::zero(sum_of_squares_.data(), sum_of_squares_.bytes(), stream);
  for (const Range& range : counted_) {
    kernels::sum_of_squares(parameters_.gradients().rows(range.begin, range.count), sum_of_squares_,
                            true, stream);
  }
  if (comm::Communicator& tp = mesh_->axis(comm::Axis::tp); tp.size() > 1) {
    tp.all_reduce(sum_of_squares_, comm::ReduceOp::sum, stream).wait(stream);
  }
  kernels::clip_scale(sum_of_squares_, static_cast<float>(clip_norm_), norm_, gradient_scale_,
                      stream);
  optimizer_.update(step + 1, lr, gradient_scale_.as<float>(), stream);
}

StepOutcome StepRunner::outcome(device::StreamRef stream) {
  loss_reduction_.wait(stream);
  double loss_sum = 0;
  float norm = 0;
  device::copy(&loss_sum, loss_sum_.data(), sizeof loss_sum, stream);
  device::copy(&norm, norm_.data(), sizeof norm, stream);
  stream.synchronize();
  return {.loss = targets_ > 0 ? loss_sum / static_cast<double>(targets_) : 0,
          .grad_norm = static_cast<double>(norm)};
}

}  // namespace fourfold::train
