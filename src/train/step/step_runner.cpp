// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/device/buffer.hpp>
#include <fourfold/device/device.hpp>
#include <fourfold/device/range.hpp>
#include <fourfold/kernels/reduction.hpp>
#include <fourfold/parallel/tensor_cut.hpp>
#include <fourfold/train/resolved_run.hpp>
#include <fourfold/train/step_runner.hpp>

#include <algorithm>
#include <cmath>
#include <utility>

namespace fourfold::train {

using device::MemoryUse;

namespace {

model::Parameters my_parameters(const ResolvedRun& run, const comm::Mesh& mesh,
                                device::Arena& arena) {
  const runfile::RunConfig& config = run.config;
  const std::vector<model::UnitRange> chunks = run.layout.chunks_of(mesh.coordinate().pp);
  const std::vector<model::ParameterSpec> table = model::parameter_table(config.model, chunks);
  return {table, parallel::tensor_boxes(table, run.mesh.tp, mesh.coordinate().tp),
          config.train.precision, arena, parallel::parameter_memory(run.zero, config.model)};
}

model::StageOptions stage_options(const ResolvedRun& run) {
  const runfile::RunConfig& config = run.config;
  return {.sequences = config.train.micro_batch,
          .tokens = config.model.context / run.mesh.cp,
          .recompute = config.train.recompute,
          .head_chunks = config.train.head_chunks,
          .tiles = run.zero.tiles > 1,
          .activations_on_host = config.offload.activations_on_host,
          .seed = config.train.seed,
          .deterministic_attention = config.train.deterministic_attention};
}

}  // namespace

StepRunner::StepRunner(const ResolvedRun& run, comm::Mesh& mesh, device::Arena& arena)
    : run_(&run),
      loss_scale_(run.config.train),
      mesh_(&mesh),
      parameters_(my_parameters(run, mesh, arena)),
      shards_(parallel::make_layout(parameters_, run.zero.shard_ranks)),
      order_(update_order(parameters_)),
      tier_(run.config.offload, arena),
      share_(parallel::make_share(parameters_, shards_,
                                  parallel::data_plane_index(run.mesh, mesh.coordinate()), run.zero,
                                  arena, tier_.state())),
      hooks_({run.config.model, run.layout, parameters_, share_, shards_}, mesh, run.tensor,
             run.context, run.zero, run.compression, arena),
      pipeline_(run.config.model, run.layout, mesh.axis(comm::Axis::pp), parameters_, hooks_, arena,
                stage_options(run), &tier_.host(), graphs_of(run, device::has_own_memory)),
      optimizer_({.rules = run.rules,
                  .stochastic_rounding = run.config.optim.stochastic_rounding,
                  .seed = run.config.train.seed,
                  .buffer_mb = run.config.offload.buffer_mb},
                 share_, tier_, order_,
                 parallel::WholeMatrices::State{parameters_, shards_, hooks_.shard_group(),
                                                mesh.axis(comm::Axis::tp), arena}),
      outer_(run, share_, mesh.axis(comm::Axis::dp), tier_, arena),
      update_(share_, hooks_, optimizer_, order_,
              GradientNorm(run, parameters_, share_, mesh, arena),
              run.config.optim.clip_norm > 0 || loss_scale_.in_use()),
      loss_sum_(arena.take(MemoryUse::workspace, DType::f64, {1})) {
  list_features();
}

void StepRunner::list_features() {
  if (tier_.is_offloaded()) {  // state is brought near beside the passes
    features_.push_back(
        {.begin_step = [this](device::StreamRef /*stream*/) { optimizer_.begin_step(); }});
  }
  if (hooks_.keeps_errors()) {  // which somebody may read still
    features_.push_back(
        {.begin_step = [this](device::StreamRef stream) { wait_for_readers(stream); },
         .prepare_save = [this](device::StreamRef stream) { hooks_.fold_errors(stream); }});
  }
  if (outer_.in_use()) {
    features_.push_back(local_replicas());
  }
  features_.emplace_back();  // of record_into()
}

/// Replicas that train by themselves and meet from time to time (mesh.dp_mode = "local").
StepFeature StepRunner::local_replicas() {
  const auto meet = [this](device::StreamRef stream) {
    optimizer_.synchronize();
    outer_.meet(stream);
    make_weights(stream);
  };
  const auto meet_after_round = [this, meet](std::int64_t completed_steps,
                                             device::StreamRef stream) {
    outer_.part();
    if (outer_.ends_round(completed_steps)) {
      meet(stream);
    }
  };
  const auto meet_for_save = [this, meet](device::StreamRef stream) {
    if (outer_.are_apart()) {
      hooks_.wait_weights(stream);
      meet(stream);
    }
    outer_.average(optimizer_, stream);
  };
  return {.begin_run = [this](device::StreamRef stream) { outer_.begin(stream); },
          .changes_weights = [this](std::int64_t steps) { return outer_.ends_round(steps); },
          .after_update = meet_after_round,
          .prepare_save = meet_for_save,
          .add_moved_memory =
              [this](parallel::MovedMemories& moved) { outer_.add_moved_memory(moved); }};
}

template <class... Arguments>
void StepRunner::tell(std::function<void(Arguments...)> StepFeature::*when,
                      std::type_identity_t<Arguments>... arguments) const {
  for (const StepFeature& feature : features_) {
    if (feature.*when) {
      (feature.*when)(arguments...);
    }
  }
}

void StepRunner::run(std::int64_t step, const StepBatches& batches, double lr,
                     device::StreamRef stream) {
  targets_ = batches.targets;
  tell(&StepFeature::begin_step, stream);
  accumulate_gradients(batches, stream);
  tell(&StepFeature::end_part, StepPart::pipeline, stream);
  reduce_losses_and_gradients(stream);
  wait_for_readers(stream);
  const bool more_changes = std::ranges::any_of(features_, [&](const StepFeature& feature) {
    return feature.changes_weights && feature.changes_weights(step + 1);
  });
  update_.run(
      {.update = step - loss_scale_.state().skipped_steps + 1, .lr = lr}, loss_scale_.scale(),
      more_changes, [&] { tell(&StepFeature::end_part, StepPart::reduce, stream); }, stream);
  tell(&StepFeature::after_update, step + 1, stream);
  tell(&StepFeature::end_part, StepPart::update, stream);
}

void StepRunner::make_weights(device::StreamRef stream) {
  optimizer_.update_weights_from_masters(stream);
  for (std::size_t segment = 0; segment < parameters_.layout().segments.size(); ++segment) {
    hooks_.weights_updated(segment, stream);
  }
}

void StepRunner::wait_for_readers(device::StreamRef stream) {
  if (state_is_read_ != nullptr) {
    std::exchange(state_is_read_, nullptr)->wait(stream);
  }
}

void StepRunner::prepare_save(device::StreamRef stream) {
  wait_for_readers(stream);
  tell(&StepFeature::prepare_save, stream);
}

void StepRunner::initialise(std::uint64_t seed, device::StreamRef stream) {
  share_.initialise(seed, stream, [&](const TensorView& values) {
    tier_.release(values.data(), values.bytes());
  });
  update_weights_from_masters(stream);
}

void StepRunner::update_weights_from_masters(device::StreamRef stream, std::int64_t updates) {
  optimizer_.go_on_after(updates);
  tell(&StepFeature::begin_run, stream);
  make_weights(stream);
}

void StepRunner::record_into(StepRecorder* recorder) {
  features_.back() = {};
  if (recorder != nullptr) {
    features_.back().end_part = std::bind_front(&StepRecorder::end, recorder);
  }
  pipeline_.record_into(recorder == nullptr ? nullptr : &recorder->actions());
  hooks_.record_into(recorder == nullptr ? nullptr : &recorder->collectives());
}

void StepRunner::reduce_losses_and_gradients(device::StreamRef stream) {
  const device::Range range(name(StepPart::reduce));
  produced_.record(stream);
  produced_.wait(communication_);
  loss_reduction_ = mesh_->data_plane().all_reduce(loss_sum_, comm::ReduceOp::sum, communication_);
  hooks_.finish_gradients(stream);
  if (comm::Communicator& stages = mesh_->axis(comm::Axis::pp); stages.size() > 1) {
    loss_reduction_.wait(communication_);
    loss_reduction_ = stages.all_reduce(loss_sum_, comm::ReduceOp::sum, communication_);
  }
}

float StepRunner::gradient_factor(const StepBatches& batches) const {
  const std::int64_t targets = run_->trains_locally ? batches.replica_targets : batches.targets;
  return targets > 0 ? static_cast<float>(loss_scale_.scale() / static_cast<double>(targets))
                     : 0.0F;
}

void StepRunner::accumulate_gradients(const StepBatches& batches, device::StreamRef stream) {
  const device::Range range(name(StepPart::pipeline));
  hooks_.begin_step(stream, loss_scale_.scale());
  device::zero(loss_sum_.data(), loss_sum_.bytes(), stream);
  const auto add_loss = [&](model::Stage& head, int slot) {
    kernels::sum(head.loss(slot), loss_sum_, true, stream);
  };
  pipeline_.train(batches.micro_batches, gradient_factor(batches), add_loss, stream);
}

StepOutcome StepRunner::outcome(device::StreamRef stream) {
  const device::Range range("wait for the outcome");
  const double scale = loss_scale_.scale();
  loss_reduction_.wait(stream);
  loss_reduction_ = comm::Work{};
  double loss_sum = 0;
  device::copy(&loss_sum, loss_sum_.data(), sizeof loss_sum, stream);
  const float norm = update_.norm(stream);
  StepOutcome outcome{.loss = targets_ > 0 ? loss_sum / static_cast<double>(targets_) : 0,
                      .grad_norm = norm,
                      .loss_scale = scale};
  outcome.status = loss_scale_.finish_step(std::isfinite(norm));
  hooks_.finish_step(outcome.status == StepStatus::applied);
  return outcome;
}

parallel::MovedMemories StepRunner::moved_memory() const {
  parallel::MovedMemories moved = hooks_.moved_memory();
  tell(&StepFeature::add_moved_memory, moved);
  return moved;
}

ForwardPass StepRunner::forward_pass() {
  return {[this](const model::Batch& batch, device::StreamRef stream) {
            pipeline_.forward_evaluate(batch, stream);
          },
          pipeline_.head()};
}

namespace {

/// Empty: they could be used.
std::string_view obstacle(const ResolvedRun& run, bool has_devices) {
  const comm::MeshShape& mesh = run.mesh;
  return !has_devices                       ? "this build computes on CPUs"
         : mesh.tp * mesh.cp * mesh.pp > 1  ? "ranks talk within a micro-batch (mesh)"
         : run.config.mesh.chunks > 1       ? "the model is in several pieces (mesh.chunks)"
         : run.zero.gather_each_unit        ? "weights are gathered (mesh.zero = 3)"
         : run.zero.reduce_each_micro_batch ? "gradients are summed each time (mesh.dp_reduce)"
         : run.config.model.dropout > 0     ? "every step drops others (model.dropout)"
         : run.config.offload.activations_on_host ? "activations are moved (offload.activations)"
         : run.batches.accumulation_steps() < 2
             ? "the only micro-batch of a step sends its gradients away"
             : std::string_view();
}

}  // namespace

parallel::GraphsOf graphs_of(const ResolvedRun& run, bool has_devices) {
  using runfile::CudaGraphs;
  const CudaGraphs wanted = run.config.train.cuda_graphs;
  const std::int64_t tokens = run.config.train.micro_batch * run.config.model.context / run.mesh.cp;
  if (wanted == CudaGraphs::never ||
      (wanted == CudaGraphs::automatic && tokens > most_tokens_for_graphs) ||
      !obstacle(run, has_devices).empty()) {
    return parallel::GraphsOf::none;
  }
  return run.zero.shard_ranks > 1 ? parallel::GraphsOf::partial_but_first
                                  : parallel::GraphsOf::partial;
}

std::string_view why_no_graphs(const ResolvedRun& run, bool has_devices) {
  return run.config.train.cuda_graphs == runfile::CudaGraphs::always ? obstacle(run, has_devices)
                                                                     : std::string_view();
}

}  // namespace fourfold::train
