// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/device/buffer.hpp>
#include <fourfold/kernels/cast.hpp>
#include <fourfold/kernels/optimizer.hpp>
#include <fourfold/train/step_runner.hpp>

namespace fourfold::train {

using device::MemoryUse;

model::StageOptions stage_options(const RunConfig& config) {
  return {.sequences = config.train.micro_batch,
          .tokens = config.model.context,
          .seed = static_cast<std::uint64_t>(config.train.seed)};
}

StepRunner::StepRunner(const RunConfig& config, comm::Mesh& mesh, device::Arena& arena)
    : clip_norm_(config.optim.clip_norm),
      data_plane_(&mesh.data_plane()),
      parameters_(model::parameter_table(config.model), config.train.precision, arena),
      seams_(mesh.data_plane(), parameters_, config.mesh.dp_bucket_mb),
      stage_(config.model, model::all_units(config.model), parameters_, seams_, arena,
             stage_options(config)),
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
  loss_reduction_ = data_plane_->all_reduce(loss_sum_, comm::ReduceOp::sum, stream);
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
  kernels::sum_of_squares(parameters_.gradients(), sum_of_squares_, false, stream);
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
