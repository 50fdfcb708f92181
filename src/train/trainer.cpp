// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "memory_report.hpp"
#include "resume.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/runfile/learning_rate.hpp>
#include <fourfold/train/mesh_layout.hpp>
#include <fourfold/train/trainer.hpp>
#include <fourfold/train/training_data.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <cmath>
#include <set>

namespace fourfold::train {
namespace {

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

std::unique_ptr<data::TokenDataset> open_validation(const runfile::RunConfig& config) {
  if (config.data.validation.empty()) {
    return nullptr;
  }
  return std::make_unique<data::TokenDataset>(
      config.data.validation, dataset_options(config, data::TokenDataset::Order::sequential));
}

/// Of one save, if each rank writes an equal share.
double save_bytes_per_rank(const TrainingState& state, int ranks) {
  double bytes = 0;
  for (const io::TensorLayout& layout : state.layouts()) {
    bytes += static_cast<double>(layout.shape.elements()) *
             static_cast<double>(size_in_bytes(layout.dtype));
  }
  return bytes / ranks;
}

/// Kinds of state that only one of checkpoint and run has: "error_feedback".
std::string kinds_missing(const std::set<io::TensorState>& here,
                          const std::set<io::TensorState>& there) {
  std::vector<std::string_view> kinds;
  for (const io::TensorState state : there) {
    if (here.count(state) == 0) {
      kinds.push_back(io::name(state));
    }
  }
  return fmt::format("{}", fmt::join(kinds, ", "));
}

/// Says what begins at zero, and what is left behind, after keys about it have changed.
void tell_other_state(const io::Checkpoint& checkpoint, const TrainingState& state) {
  std::set<io::TensorState> saved;
  std::set<io::TensorState> wanted;
  for (const io::StoredTensor& tensor : checkpoint.tensors()) {
    saved.insert(tensor.id.state);
  }
  for (const io::TensorLayout& layout : state.layouts()) {
    wanted.insert(layout.id.state);
  }
  if (const std::string kinds = kinds_missing(saved, wanted); !kinds.empty()) {
    log::info(fmt::format("{} is not in the checkpoint and begins at zero", kinds));
  }
  if (const std::string kinds = kinds_missing(wanted, saved); !kinds.empty()) {
    log::info(fmt::format("{} of the checkpoint is of no use to this run and left behind", kinds));
  }
}

/// What does not fit the mesh is told with its place in the run file.
StepRunner make_runner(const runfile::EffectiveConfig& effective, comm::Mesh& mesh,
                       device::Arena& arena) {
  try {
    return {effective.config, mesh, arena};
  } catch (const UserError& error) {
    throw UserError(error.code(), runfile::located(error.what(), effective.origins), error.where());
  }
}

}  // namespace

Trainer::Trainer(const runfile::EffectiveConfig& effective, comm::Mesh& mesh,
                 const TrainerOptions& options, telemetry::MetricsLog* metrics)
    : config_(effective.config),
      mesh_(&mesh),
      metrics_(metrics),
      dataset_(config_.data.train, dataset_options(config_, data::TokenDataset::Order::shuffled)),
      validation_(open_validation(config_)),
      runner_(make_runner(effective, mesh, arena_)),
      loader_(dataset_, batch_plan(config_, mesh.shape()), mesh.coordinate().dp,
              held_tokens(mesh, config_.model.context), arena_),
      state_(config_.model, runner_.layout(), runner_.share(), runner_.optimizer(), mesh,
             zero_options(config_, mesh.shape()),
             {.errors = runner_.error_pieces(), .outer = runner_.outer_optimizer().moments()}),
      store_(config_.checkpoint.dir,
             {.keep_last = static_cast<int>(config_.checkpoint.keep_last),
              .plan = {},
              .done_with = [this](const void* begin,
                                  std::size_t bytes) { runner_.tier().release(begin, bytes); }}),
      stop_request_(config_.log.dir, options.deadline_unix_s),
      save_bytes_(save_bytes_per_rank(state_, mesh.world().size())) {
  if (validation_) {
    const std::int64_t samples = config_.train.eval_batches * config_.train.global_batch;
    evaluator_ =
        std::make_unique<Evaluator>(*validation_, mesh, config_.train.micro_batch, samples, arena_);
  }
  if (mesh.world().rank() == 0) {  // once for all ranks, which see the same files
    for (const io::TokenFile& file : dataset_.files()) {
      file.verify_index();
    }
  }
  arena_.seal();
  resume_or_initialise(options);
  memory_watch_.look();
  device::return_freed_memory();
  announce(options);
}

void Trainer::resume_or_initialise(const TrainerOptions& options) {
  const auto checkpoint = resume({.config = config_,
                                  .dataset = dataset_,
                                  .store = store_,
                                  .wanted = state_.wanted(),
                                  .allowed_changes = options.allowed_changes},
                                 mesh_->world());
  if (!checkpoint) {
    runner_.initialise(static_cast<std::uint64_t>(config_.train.seed), stream_);
    return;
  }
  runner_.update_weights_from_masters(stream_);
  progress_ = progress_of(*checkpoint);
  LossScale& loss_scale = runner_.loss_scale();
  loss_scale.restore(loss_scale_of(*checkpoint, loss_scale.state()));
  last_checkpoint_ = checkpoint->path();
  last_saved_step_ = progress_.step;
  log::info(fmt::format("resumed from {} (step {}, saved on mesh {}, now {})",
                        checkpoint->path().string(), progress_.step, checkpoint->mesh().str(),
                        mesh_->shape().str()));
  tell_other_state(*checkpoint, state_);
}

void Trainer::announce(const TrainerOptions& options) const {
  const std::int64_t parameters = model::parameter_count(config_.model);
  log::info(fmt::format(
      "{} with {:.2f} M parameters, {} on mesh {}, {} samples of {} tokens per "
      "epoch",
      name(config_.model.family), static_cast<double>(parameters) / 1e6,
      name(config_.train.precision), mesh_->shape().str(), dataset_.samples(), dataset_.context()));
  log::info(fmt::format("memory per rank: {} MiB ({})", mib_text(arena_.total_bytes()),
                        memory_by_use_text(arena_)));
  announce_traffic();
  if (const StateTier& tier = runner_.tier();
      tier.is_offloaded() || config_.offload.activations_on_host) {
    log::info(fmt::format("offloaded per rank: {} MiB in host memory (activations {}){}",
                          mib_text(tier.host_bytes()), mib_text(tier.host_activation_bytes()),
                          tier.tier() == runfile::StateTier::nvme
                              ? fmt::format(", {} MiB in {}", mib_text(tier.file_bytes()),
                                            config_.offload.nvme_directory)
                              : ""));
  }
  if (metrics_ != nullptr) {
    telemetry::RunStart run = options.facts;
    run.first_step = progress_.step;
    run.steps = config_.train.steps;
    run.checkpoint = last_checkpoint_.string();
    run.mesh = mesh_->shape().str();
    run.precision = name(config_.train.precision);
    run.parameters = parameters;
    run.tokens_per_step = config_.train.global_batch * config_.model.context;
    run.data_plane_bytes = data_plane_bytes();
    run.deadline_unix_s = options.deadline_unix_s.value_or(0);
    metrics_->start(run);
  }
}

std::int64_t Trainer::data_plane_bytes() const {
  const OuterOptimizer& outer = runner_.outer_optimizer();
  const std::int64_t weights = outer.in_use() ? outer.sent_bytes() / config_.mesh.average_every : 0;
  return runner_.sent_gradient_bytes() + weights;
}

void Trainer::announce_traffic() const {
  const runfile::MeshConfig& wanted = config_.mesh;
  if (const std::int64_t bytes = runner_.sent_gradient_bytes(); bytes > 0) {
    log::info(fmt::format("gradients: {:.2f} MB sent per rank and step, mesh.dp_compress = \"{}\"",
                          static_cast<double>(bytes) / 1e6, name(wanted.dp_compress)));
  } else if (wanted.dp_compress != runfile::GradientCompression{} &&
             mesh_->data_plane().size() == 1) {
    log::info("mesh.dp_compress has no effect: no other rank has the same parameters");
  }
  if (const OuterOptimizer& outer = runner_.outer_optimizer(); outer.in_use()) {
    log::info(
        fmt::format("{} replicas train by themselves: {:.2f} MB of weights sent per rank "
                    "every {} steps, optim.outer = \"{}\"",
                    mesh_->shape().dp, static_cast<double>(outer.sent_bytes()) / 1e6,
                    wanted.average_every, name(config_.optim.outer)));
  } else if (wanted.dp_mode == runfile::DataParallelMode::local) {
    log::info("mesh.dp_mode = \"local\" has no effect: mesh.dp is 1");
  }
}

void Trainer::rehearse() {
  loader_.load(progress_.step, progress_.consumed_samples, stream_);
  store_.check_writable(mesh_->world());
}

bool Trainer::due(std::int64_t every_steps) const {
  return progress_.step == config_.train.steps ||
         (every_steps > 0 && progress_.step % every_steps == 0);
}

RunResult Trainer::run() {
  store_.check_writable(mesh_->world());  // before hours of work that could not be saved
  store_.sweep_leftovers(mesh_->world());
  if (config_.log.trace) {
    tracer_.emplace(config_, runner_.layout().schedule, *mesh_, progress_.step, stream_);
  }
  RunResult result;
  StopReason reason = stop_request_.poll(mesh_->world(), needed_s());  // what came during set-up
  while (progress_.step < config_.train.steps && reason == StopReason::none) {
    const MadeStep step = one_step();
    step_s_ = step.step_s;
    memory_watch_.look();
    check_finite(step.outcome);
    result.loss = step.outcome.loss;
    record(step);
    if (tracer_) {
      tracer_->finish_step(progress_.step);
    }
    if (evaluator_ && due(config_.train.eval_every_steps)) {
      evaluate();
    }
    if (due(config_.checkpoint.every_steps)) {
      save();
    }
    reason = stop_request_.poll(mesh_->world(), needed_s());
  }
  if (progress_.step != last_saved_step_ && progress_.step > 0) {
    save();
  }
  report_memory();
  const bool finished = progress_.step >= config_.train.steps;
  result.code = finished ? ExitCode::finished : ExitCode::stopped_saved;
  result.reason = finished ? StopReason::none : reason;
  result.progress = progress_;
  result.checkpoint = last_checkpoint_;
  return result;
}

void Trainer::report_memory() {
  telemetry::MemoryRecord record = memory_record(arena_, runner_.tier(), memory_watch_, *mesh_);
  if (record.taken_bytes == 0) {
    return;
  }
  record.step = progress_.step;
  log::info(memory_text(record));
  if (metrics_ != nullptr) {
    metrics_->memory(record);
  }
}

Trainer::MadeStep Trainer::one_step() {
  const Stopwatch watch;
  StepRecorder* recorder = tracer_ ? tracer_->recorder(progress_.step) : nullptr;
  runner_.record_into(recorder);
  if (recorder != nullptr) {
    recorder->begin(stream_);
  }
  const StepBatches batches = loader_.load(progress_.step, progress_.consumed_samples, stream_);
  const double data_s = watch.seconds();
  if (recorder != nullptr) {
    recorder->end(StepPart::load, stream_);
  }
  const double lr = learning_rate(config_.optim.schedule, progress_.step);
  runner_.run(progress_.step, batches, lr, stream_);
  const StepOutcome outcome = runner_.outcome(stream_);
  ++progress_.step;
  progress_.consumed_samples += config_.train.global_batch;
  progress_.consumed_tokens += batches.targets;
  return {
      .outcome = outcome, .targets = batches.targets, .step_s = watch.seconds(), .data_s = data_s};
}

void Trainer::record(const MadeStep& step) {
  if (metrics_ == nullptr) {
    return;
  }
  metrics_->step({.step = progress_.step,
                  .loss = step.outcome.loss,
                  .grad_norm = step.outcome.grad_norm,
                  .lr = learning_rate(config_.optim.schedule, progress_.step - 1),
                  .tokens = progress_.consumed_tokens,
                  .step_s = step.step_s,
                  .tokens_per_s = static_cast<double>(step.targets) / step.step_s,
                  .data_s = step.data_s,
                  .loss_scale = runner_.loss_scale().in_use() ? step.outcome.loss_scale : 0,
                  .skipped_steps = runner_.loss_scale().state().skipped_steps});
}

void Trainer::check_finite(const StepOutcome& outcome) const {
  if (std::isfinite(outcome.loss) && outcome.fate != StepFate::lost) {
    return;
  }
  const std::string last = last_checkpoint_.empty() ? "the start" : last_checkpoint_.string();
  if (std::isfinite(outcome.loss) && runner_.loss_scale().in_use()) {
    throw UserError(
        ExitCode::data_corrupt,
        fmt::format("gradients overflow f16 at step {} though the loss is multiplied by {} only "
                    "({}; nothing of this step is saved) {}, or train with train.precision = "
                    "\"bf16\", and resume from {}",
                    progress_.step, outcome.loss_scale,
                    config_.train.loss_scale == 0 ? "train.loss_scale_min, the lowest allowed"
                                                  : "train.loss_scale, which is fixed",
                    config_.train.loss_scale == 0
                        ? "lower train.loss_scale_min if it is above 1, lower optim.lr or lengthen "
                          "optim.warmup_steps"
                        : "lower it, or set it to \"auto\"",
                    last));
  }
  throw UserError(
      ExitCode::data_corrupt,
      fmt::format(
          "loss {} and gradient norm {} at step {} (training has diverged, nothing of it "
          "is saved) lower optim.lr or lengthen optim.warmup_steps and resume from {}; if the "
          "weights were lost before it was saved, from the step before",
          outcome.loss, outcome.grad_norm, progress_.step, last));
}

void Trainer::check_masters() {
  const std::int64_t lost = runner_.masters_are_finite(stream_) ? 0 : 1;
  if (comm::all_reduce_scalar(mesh_->world(), lost, comm::ReduceOp::max) == 0) {
    return;
  }
  throw UserError(
      ExitCode::data_corrupt,
      fmt::format(
          "weights are not finite after step {} (its update was too large, and nothing of it "
          "is saved) lower the learning rate and resume from {}",
          progress_.step, last_checkpoint_.empty() ? "the start" : last_checkpoint_.string()));
}

void Trainer::evaluate() {
  const Stopwatch watch;
  const Evaluation evaluation = evaluator_->run(runner_.forward_pass(), stream_);
  if (metrics_ != nullptr) {
    metrics_->evaluation({.step = progress_.step,
                          .loss = evaluation.loss,
                          .tokens = evaluation.targets,
                          .eval_s = watch.seconds()});
  }
}

void Trainer::save() {
  const Stopwatch watch;
  runner_.prepare_save(stream_);
  stream_.ref().synchronize();
  runner_.settle_state();
  check_masters();
  const io::SaveReport report =
      store_.save({.step = progress_.step,
                   .mesh = mesh_->shape(),
                   .scalars = to_scalars(progress_, runner_.loss_scale(), runfile::to_toml(config_),
                                         token_counts(dataset_)),
                   .tensors = state_.layouts(),
                   .pieces = state_.pieces()},
                  mesh_->world());
  memory_watch_.look();
  device::return_freed_memory();
  save_s_ = watch.seconds();
  last_checkpoint_ = report.path;
  last_saved_step_ = progress_.step;
  if (metrics_ != nullptr) {
    metrics_->checkpoint({.step = progress_.step,
                          .path = report.path.string(),
                          .bytes = report.payload_bytes,
                          .save_s = save_s_});
  }
}

double Trainer::needed_s() const {
  TimesSoFar times{.step_s = step_s_, .save_s = save_s_, .save_bytes = save_bytes_};
  if (evaluator_) {
    const std::int64_t next = progress_.step + 1;
    const std::int64_t every = config_.train.eval_every_steps;
    times.evaluation_due = next == config_.train.steps || (every > 0 && next % every == 0);
    times.evaluation_s = evaluator_->last_run_s();
    times.evaluation_steps = static_cast<double>(evaluator_->samples()) /
                             static_cast<double>(config_.train.global_batch);
  }
  return time_needed_s(times);
}

}  // namespace fourfold::train
