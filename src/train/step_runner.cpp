// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/device/buffer.hpp>
#include <fourfold/kernels/cast.hpp>
#include <fourfold/kernels/optimizer.hpp>
#include <fourfold/parallel/tensor_cut.hpp>
#include <fourfold/train/mesh_layout.hpp>
#include <fourfold/train/step_runner.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace fourfold::train {

using device::MemoryUse;

model::StageOptions stage_options(const runfile::RunConfig& config, int cp) {
  return {.sequences = config.train.micro_batch,
          .tokens = config.model.context / cp,
          .recompute = config.train.recompute,
          .seed = static_cast<std::uint64_t>(config.train.seed)};
}

namespace {

model::Parameters my_parameters(const runfile::RunConfig& config,
                                const parallel::StageLayout& layout, const comm::Mesh& mesh,
                                device::Arena& arena) {
  const std::vector<model::Units> chunks = layout.chunks_of(mesh.coordinate().pp);
  const std::vector<model::ParameterSpec> table = model::parameter_table(config.model, chunks);
  return {table, parallel::tensor_boxes(config.model, table, mesh.shape().tp, mesh.coordinate().tp),
          config.train.precision, arena};
}

}  // namespace

StepRunner::StepRunner(const runfile::RunConfig& config, comm::Mesh& mesh, device::Arena& arena)
    : StepRunner(config, lay_out(config, mesh.shape(), schedule_file_text(config, mesh.world())),
                 mesh, arena) {}

StepRunner::StepRunner(const runfile::RunConfig& config, parallel::StageLayout layout,
                       comm::Mesh& mesh, device::Arena& arena)
    : clip_norm_(config.optim.clip_norm),
      loss_scale_(config.train),
      mesh_(&mesh),
      layout_(std::move(layout)),
      parameters_(my_parameters(config, layout_, mesh, arena)),
      counted_(
          parallel::counted_once(config.model, parameters_, mesh.shape().tp, mesh.coordinate().tp)),
      seams_(config.model, layout_, mesh, parameters_, tensor_options(config, mesh.shape()),
             context_options(config, mesh.shape()), config.mesh.dp_bucket_mb, arena),
      pipeline_(config.model, layout_, mesh.axis(comm::Axis::pp), parameters_, seams_, arena,
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
  note_end(StepPart::pipeline, stream);
  reduce_losses_and_gradients(stream);
  note_end(StepPart::reduce, stream);
  clip_and_update(step, lr, stream);
  note_end(StepPart::update, stream);
}

void StepRunner::record_into(StepRecorder* recorder) {
  recorder_ = recorder;
  pipeline_.record_into(recorder == nullptr ? nullptr : &recorder->actions());
}

void StepRunner::note_end(StepPart part, device::StreamRef stream) {
  if (recorder_ != nullptr) {
    recorder_->end(part, stream);
  }
}

void StepRunner::reduce_losses_and_gradients(device::StreamRef stream) {
  loss_reduction_ = mesh_->data_plane().all_reduce(loss_sum_, comm::ReduceOp::sum, stream);
  seams_.wait_all(stream);
  if (comm::Communicator& pp = mesh_->axis(comm::Axis::pp); pp.size() > 1) {
    loss_reduction_.wait(stream);
    loss_reduction_ = pp.all_reduce(loss_sum_, comm::ReduceOp::sum, stream);
  }
}

void StepRunner::accumulate_gradients(const StepBatches& batches, device::StreamRef stream) {
  parameters_.zero_gradients(stream);
  device::zero(loss_sum_.data(), loss_sum_.bytes(), stream);
  const float scale =
      batches.targets > 0
          ? static_cast<float>(loss_scale_.scale() / static_cast<double>(batches.targets))
          : 0.0F;
  pipeline_.train(
      batches.micro_batches, scale,
      [&](model::Stage& head, int slot) { kernels::sum(head.loss(slot), loss_sum_, true, stream); },
      stream);
}

void StepRunner::clip_and_update(std::int64_t step, double lr, device::StreamRef stream) {
  device::zero(sum_of_squares_.data(), sum_of_squares_.bytes(), stream);
  for (const Range& range : counted_) {
    kernels::sum_of_squares(parameters_.gradients().rows(range.begin, range.count), sum_of_squares_,
                            true, stream);
  }
  for (const comm::Axis axis : {comm::Axis::tp, comm::Axis::pp}) {
    if (comm::Communicator& ranks = mesh_->axis(axis); ranks.size() > 1) {
      ranks.all_reduce(sum_of_squares_, comm::ReduceOp::sum, stream).wait(stream);
    }
  }
  kernels::clip_scale(sum_of_squares_, static_cast<float>(clip_norm_),
                      static_cast<float>(loss_scale_.scale()), norm_, gradient_scale_, stream);
  const std::int64_t applied = step - loss_scale_.state().skipped_steps;
  optimizer_.update(applied + 1, lr, gradient_scale_.as<float>(), stream);
}

ForwardPass StepRunner::forward_pass() {
  return {[this](const model::Batch& batch, device::StreamRef stream) {
            pipeline_.forward_evaluate(batch, stream);
          },
          pipeline_.head()};
}

StepOutcome StepRunner::outcome(device::StreamRef stream) {
  loss_reduction_.wait(stream);
  double loss_sum = 0;
  float norm = 0;
  device::copy(&loss_sum, loss_sum_.data(), sizeof loss_sum, stream);
  device::copy(&norm, norm_.data(), sizeof norm, stream);
  stream.synchronize();
  StepOutcome outcome{.loss = targets_ > 0 ? loss_sum / static_cast<double>(targets_) : 0,
                      .grad_norm = static_cast<double>(norm),
                      .loss_scale = loss_scale_.scale()};
  outcome.fate = loss_scale_.settle(std::isfinite(norm));
  return outcome;
}

}  // namespace fourfold::train
