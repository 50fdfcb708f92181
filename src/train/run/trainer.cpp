// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "plan/memory_report.hpp"
#include "saves/resume.hpp"
#include "saves/run_saves.hpp"
#include "startup_log.hpp"
#include "verify/divergence.hpp"

#include <fourfold/base/clock.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/standstill.hpp>
#include <fourfold/comm/fail_together.hpp>
#include <fourfold/comm/flight_recorder.hpp>
#include <fourfold/device/device.hpp>
#include <fourfold/device/range.hpp>
#include <fourfold/io/retention.hpp>
#include <fourfold/runfile/learning_rate.hpp>
#include <fourfold/train/batch_loader.hpp>
#include <fourfold/train/rank_plan.hpp>
#include <fourfold/train/same_tokens.hpp>
#include <fourfold/train/trainer.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace fourfold::train {
namespace {

std::unique_ptr<data::TokenDataset> open_validation(const runfile::RunConfig& config) {
  if (config.data.validation.empty()) {
    return nullptr;
  }
  return std::make_unique<data::TokenDataset>(
      config.data.validation, dataset_options(config, data::TokenDataset::Order::sequential));
}

/// Of this job.
double left_s(const TrainerOptions& options) {
  return options.deadline_unix_s ? std::max(0.0, *options.deadline_unix_s - unix_time_s())
                                 : std::numeric_limits<double>::infinity();
}

}  // namespace

Trainer::Trainer(ResolvedRun run, comm::Mesh& mesh, const TrainerOptions& options,
                 telemetry::MetricsLog* metrics)
    : run_(std::move(run)),
      config_(run_.config),
      mesh_(&mesh),
      metrics_(metrics),
      is_told_finished_(options.is_told_finished),
      arena_(make_arena(run_, mesh.world())),
      dataset_(config_.data.train, dataset_options(config_, data::TokenDataset::Order::shuffled)),
      validation_(open_validation(config_)),
      runner_(run_, mesh, arena_),
      loader_(dataset_, run_.batches, mesh.coordinate().dp,
              held_tokens(mesh, config_.model.context), arena_),
      state_(run_, runner_.share(), runner_.optimizer(), mesh, runner_.error_pieces(),
             runner_.outer_optimizer().moments()),
      stop_request_(config_.log.dir, options.deadline_unix_s, options.holds_run,
                    options.warning_s) {
  if (validation_) {
    const std::int64_t samples = config_.train.eval_batches * config_.train.global_batch;
    evaluator_ =
        std::make_unique<Evaluator>(*validation_, mesh, config_.train.micro_batch, samples, arena_);
  }
  if (mesh.world().rank() == 0) {  // once for all ranks, which see the same files
    for (const io::TokenFile& file : dataset_.files()) {
      file.verify_index();
    }
    if (validation_) {
      for (const io::TokenFile& file : validation_->files()) {
        file.verify_index();
      }
    }
  }
  require_same_tokens(dataset_, "data.train", mesh.world().host());
  if (validation_) {
    require_same_tokens(*validation_, "data.validation", mesh.world().host());
    validation_data_ = validation_data(*validation_, evaluator_->samples(), mesh.world().host());
  }
  data_facts_ = data_facts(dataset_, mesh.world());
  arena_.seal();
  registered_ = register_memory(arena_, runner_.moved_memory());
  // Offloaded state passes through saves and loads piece by piece.
  const auto done_with = [this](const void* begin, std::size_t bytes) {
    runner_.tier().release(begin, bytes);
  };
  saves_ = std::make_unique<RunSaves>(config_, state_.layouts(), mesh.world().host(),
                                      RunSavesOptions{.rank_hosts = options.facts.rank_hosts,
                                                      .done_with = done_with,
                                                      .metrics = metrics,
                                                      .left_s = left_s(options),
                                                      .rehearses = options.rehearses});
  resume_or_initialise(options);
  read_first_batches(progress_);
  memory_watch_.look();
  device::return_freed_memory();
  log_run_summary(runner_, mesh, dataset_, arena_);
  mesh.world().barrier();  // no rank refuses any more when the first one writes that the run starts
  if (is_told_finished_ && !has_nothing_to_do()) {
    stop_while_finished_ = stop_request_.stop_before_first_step(mesh.world(), needed_s());
    require_not_superseded(stop_while_finished_);
  }
  if (metrics_ != nullptr && !has_nothing_to_do() && stop_while_finished_ == StopReason::none) {
    telemetry::RunStart start = run_start(runner_, mesh, options.facts);
    start.first_step = progress_.step;
    start.checkpoint = saves_->newest().string();
    start.deadline_unix_s = options.deadline_unix_s.value_or(0);
    metrics_->start(start);
  }
}

Trainer::~Trainer() = default;

void Trainer::read_first_batches(const Progress& progress) {
  if (is_told_finished_ && progress.step >= config_.train.steps) {
    return;
  }
  comm::collective_try(mesh_->world(), [&] {
    loader_.load(progress.step, progress.consumed_samples, stream_);
    if (evaluator_) {
      evaluator_->read_first(stream_);
    }
  });
}

void Trainer::resume_or_initialise(const TrainerOptions& options) {
  if (config_.checkpoint.weights_only) {  // over which the weights come
    runner_.initialise(config_.train.seed, stream_);
    stream_.ref().synchronize();
  }
  const auto resumed = saves_->resume(
      data_facts_, state_.wanted(), options.allowed_changes,
      [this](const io::Checkpoint& found) { read_first_batches(progress_of(found)); });
  if (!resumed) {
    runner_.initialise(config_.train.seed, stream_);
    return;
  }
  const io::Checkpoint& checkpoint = resumed->checkpoint;
  state_.put(stream_);
  if (resumed->weights_only) {
    runner_.update_weights_from_masters(stream_);
    log::info(
        format_message("begins with the weights of {} (step {}, saved on mesh {}); all else is new",
                       checkpoint.path().string(), checkpoint.step(), checkpoint.mesh().str()));
    return;
  }
  take_over_tokenizers(checkpoint, data_facts_);
  progress_ = progress_of(checkpoint);
  LossScale& loss_scale = runner_.loss_scale();
  loss_scale.restore(loss_scale_of(checkpoint, loss_scale.state()));
  runner_.update_weights_from_masters(stream_, progress_.step - loss_scale.state().skipped_steps);
  log::info(format_message("resumed from {} (step {}, saved on mesh {}, now {})",
                           checkpoint.path().string(), progress_.step, checkpoint.mesh().str(),
                           mesh_->shape().str()));
  tell_other_state(checkpoint, state_.layouts());
}

void Trainer::rehearse() {
  saves_->check_writable();
}

bool Trainer::is_due_at(std::int64_t step, std::int64_t every_steps) const {
  return step == config_.train.steps || (every_steps > 0 && step % every_steps == 0);
}

RunResult Trainer::run() {
  saves_->begin(progress_.step);
  const auto request = [this](bool may_arrive) { return save_request(may_arrive); };
  if (config_.log.trace) {
    tracer_.emplace(config_, run_.layout.schedule, *mesh_, progress_.step, stream_);
  }
  RunResult result;
  Asked asked = ask();  // what came during set-up
  while (progress_.step < config_.train.steps && asked.stop == StopReason::none) {
    telemetry::StepRecord record;
    const StepOutcome outcome = one_step(record);
    last_steps_.add(record.step_s);
    memory_watch_.look();
    if (device_watch_.look_now_and_then(steady_time_s())) {
      record.device_used_bytes = device_watch_.used_bytes();
      record.device_total_bytes = device_watch_.total_bytes();
    }
    check_finite(outcome);
    result.loss = outcome.loss;
    if (metrics_ != nullptr) {
      metrics_->step(record);
    }
    if (tracer_) {
      const device::Range range("trace");
      tracer_->finish_step(progress_.step);
    }
    if (evaluator_ && is_due_at(progress_.step, config_.train.eval_every_steps)) {
      evaluate();
    }
    if (saves_->after_step(progress_.step, request)) {
      look_after_save();
    }
    asked = ask();
    if (asked.save) {
      save_as_asked();
    }
  }
  result.graphs = runner_.graph_counts();
  if (result.graphs.launches > 0) {
    log::info(
        format_message("{} micro-batches per rank launched as CUDA graphs, {} of them recorded",
                       result.graphs.launches, result.graphs.captures));
  }
  if (saves_->save_once(progress_.step, request)) {
    look_after_save();
  }
  saves_->finish();
  saves_->end();
  report_memory();
  const bool finished = progress_.step >= config_.train.steps;
  result.code = finished ? ExitCode::finished : ExitCode::stopped_saved;
  result.reason = finished ? StopReason::none : asked.stop;
  result.progress = progress_;
  result.checkpoint = saves_->newest();
  return result;
}

Asked Trainer::ask() {
  const Asked asked = stop_request_.poll(mesh_->world(), needed_s());
  require_not_superseded(asked.stop);
  return asked;
}

void Trainer::require_not_superseded(StopReason stop) const {
  if (stop == StopReason::superseded) {
    throw UserError(ExitCode::no_progress,
                    format_message("{}: another start of this run has taken over, or the directory "
                                   "was removed or moved; this one ends at step {} and writes "
                                   "nothing more",
                                   config_.log.dir, progress_.step));
  }
}

void Trainer::save_as_asked() {
  log::info(format_message("a SAVE file asks for a checkpoint after step {}", progress_.step));
  if (saves_->save_once(progress_.step,
                        [this](bool may_arrive) { return save_request(may_arrive); })) {
    look_after_save();
  }
}

void Trainer::tell_activity(std::string activity) const {
  if (comm::FlightRecorder* const recorder = mesh_->world().flight_recorder()) {
    recorder->set_activity(std::move(activity));
  }
}

io::SaveRequest Trainer::save_request(bool may_arrive) {
  tell_activity(fmt::format("saving step {}", progress_.step));
  runner_.prepare_save(stream_);
  // Alike on all ranks, also on those that hold nothing.
  const bool arrives = may_arrive && device::has_own_memory && !runner_.tier().is_offloaded();
  if (arrives) {
    runner_.keep_state_until(state_.begin_fetch(stream_));
  } else {
    stream_.ref().synchronize();
    runner_.synchronize_state();
    state_.fetch(stream_);
  }
  check_weights();
  io::CheckpointScalars scalars =
      to_scalars(progress_, runner_.loss_scale(), runfile::to_toml(config_), data_facts_);
  if (validation_step_ == progress_.step) {
    scalars.texts[io::validation_loss_name] = fmt::format("{}", validation_loss_);
    scalars.texts[io::validation_data_name] = validation_data_;
  }
  return {.step = progress_.step,
          .mesh = mesh_->shape(),
          .scalars = std::move(scalars),
          .tensors = state_.layouts(),
          .pieces = state_.pieces(),
          .has_arrived =
              arrives ? std::function<bool()>([this] { return state_.has_arrived(); }) : nullptr};
}

void Trainer::look_after_save() {
  memory_watch_.look();
  device_watch_.look();
  device::return_freed_memory();
}

void Trainer::report_memory() {
  device_watch_.look();
  telemetry::MemoryRecord record =
      memory_record(arena_, runner_.tier(), saves_->staging_bytes(),
                    own_library_bytes(run_, *mesh_), memory_watch_, device_watch_, *mesh_);
  if (record.taken_bytes == 0) {
    return;
  }
  record.step = progress_.step;
  log::info(memory_text(record, process_bytes(mesh_->world().size())));
  if (metrics_ != nullptr) {
    metrics_->memory(record);
  }
}

StepBatches Trainer::load(double& data_s) {
  const Stopwatch watch;
  const device::Range range(name(StepPart::load));
  StepRecorder* const recorder = tracer_ ? tracer_->recorder(progress_.step) : nullptr;
  runner_.record_into(recorder);
  if (recorder != nullptr) {
    recorder->begin(stream_);
  }
  const StepBatches batches = loader_.load(progress_.step, progress_.consumed_samples, stream_);
  if (recorder != nullptr) {
    recorder->end(StepPart::load, stream_);
  }
  data_s += watch.seconds();
  return batches;
}

StepOutcome Trainer::one_step(telemetry::StepRecord& record) {
  const Stopwatch watch;
  const device::Range range([&] { return fmt::format("step {}", progress_.step + 1); });
  tell_activity(fmt::format("step {}", progress_.step + 1));
  const StepBatches batches = load(record.data_s);
  record.lr = learning_rate(config_.optim.schedule, progress_.step);
  runner_.run(progress_.step, batches, record.lr, stream_);
  ++progress_.step;
  progress_.consumed_samples += config_.train.global_batch;
  progress_.consumed_tokens += batches.targets;
  const StepOutcome outcome = runner_.outcome(stream_);
  runner_.record_into(nullptr);  // evaluations and saves are of no step
  record.step_s = watch.seconds();
  record.step = progress_.step;
  record.loss = outcome.loss;
  record.grad_norm = outcome.grad_norm;
  record.tokens = progress_.consumed_tokens;
  record.tokens_per_s = static_cast<double>(batches.targets) / record.step_s;
  record.loss_scale = runner_.loss_scale().in_use() ? outcome.loss_scale : 0;
  record.skipped_steps = runner_.loss_scale().state().skipped_steps;
  return outcome;
}

void Trainer::check_finite(const StepOutcome& outcome) {
  if (divergence(outcome, config_.train, progress_.step, saves_->newest())) {
    saves_->finish();  // what was saved before is good, and named
    throw *divergence(outcome, config_.train, progress_.step, saves_->newest());
  }
}

void Trainer::check_weights() {
  const std::int64_t lost = runner_.weights_are_finite(stream_) ? 0 : 1;
  if (comm::all_reduce_scalar(mesh_->world(), lost, comm::ReduceOp::max) > 0) {
    saves_->finish();
    throw lost_weights(progress_.step, saves_->newest());
  }
}

void Trainer::evaluate() {
  const Stopwatch watch;
  const device::Range range("evaluation");
  tell_activity(fmt::format("evaluation after step {}", progress_.step));
  const Evaluation evaluation = evaluator_->run(runner_.forward_pass(), stream_);
  if (metrics_ != nullptr) {
    metrics_->evaluation({.step = progress_.step,
                          .loss = evaluation.loss,
                          .tokens = evaluation.targets,
                          .eval_s = watch.seconds()});
  }
  if (divergence(evaluation, progress_.step, saves_->newest())) {
    saves_->finish();
    throw *divergence(evaluation, progress_.step, saves_->newest());
  }
  validation_step_ = progress_.step;
  validation_loss_ = evaluation.loss;
}

double Trainer::needed_s() const {
  TimesSoFar times{.step_s = last_steps_.value(), .margin_s = config_.checkpoint.margin_s};
  saves_->add_to(times, progress_.step + 1);
  if (evaluator_) {
    times.evaluation_due = is_due_at(progress_.step + 1, config_.train.eval_every_steps);
    times.evaluation_s = evaluator_->last_run_s();
    times.evaluation_steps = static_cast<double>(evaluator_->samples()) /
                             static_cast<double>(config_.train.global_batch);
  }
  return time_needed_s(times);
}

}  // namespace fourfold::train
