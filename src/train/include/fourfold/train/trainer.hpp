// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/error.hpp>
#include <fourfold/comm/mesh.hpp>
#include <fourfold/data/dataset.hpp>
#include <fourfold/device/arena.hpp>
#include <fourfold/device/process_memory.hpp>
#include <fourfold/device/stream.hpp>
#include <fourfold/io/save_request.hpp>
#include <fourfold/runfile/run_config.hpp>
#include <fourfold/telemetry/metrics.hpp>
#include <fourfold/train/batch_loader.hpp>
#include <fourfold/train/data_facts.hpp>
#include <fourfold/train/evaluator.hpp>
#include <fourfold/train/step_runner.hpp>
#include <fourfold/train/step_tracer.hpp>
#include <fourfold/train/stop_request.hpp>
#include <fourfold/train/training_state.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fourfold::train {

class RunSaves;

struct TrainerOptions {
  std::vector<std::string> allowed_changes;    ///< --allow-change: keys that may differ on resuming
  std::optional<double> deadline_unix_s = {};  ///< when the job ends
  double warning_s = usual_warning_s;          ///< see StopRequest
  /// Whether this start may still write into log.dir, asked by rank 0 at every step; empty: always.
  std::function<bool()> holds_run = {};
  /// What is known of the program and its ranks, for logs and the report: version, device,
  /// rank_hosts, libraries. The trainer fills in the rest.
  telemetry::RunStart facts;
  /// Only rehearse() will be called: of where checkpoints go it is tried whether they can.
  bool rehearses = false;
  /// The record in log.dir says that the run is finished, at however many steps: a start that finds
  /// no step to make, or is stopped before it makes one, leaves it as it is. The same on all ranks.
  bool is_told_finished = false;
};

/// How a run ended when it ended well.
struct RunResult {
  ExitCode code = ExitCode::finished;  ///< finished or stopped_saved
  StopReason reason = StopReason::none;
  Progress progress;
  std::filesystem::path checkpoint;  ///< newest committed one; empty when none
  double loss = 0;                   ///< of the last step; 0 when none was made
  parallel::GraphCounts graphs;      ///< train.cuda_graphs
};

/// One rank of a training run, from a run file to its last checkpoint. Collective in all it does:
/// all ranks of the mesh make and call it alike.
class Trainer {
 public:
  /// Sets everything up: data, memory, model; takes up the newest checkpoint as checkpoint.resume
  /// says, else draws initial weights. All tensors are there after this; the kernels' scratch and
  /// the transport's buffers find their size in the first step.
  /// @param run  on this mesh
  /// @param metrics  this rank's, or nullptr: every rank makes the same records, rank 0's are shown
  /// @throws UserError for everything that is wrong with run file, data or checkpoints
  Trainer(ResolvedRun run, comm::Mesh& mesh, const TrainerOptions& options,
          telemetry::MetricsLog* metrics);
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;
  ~Trainer();

  /// Whether the run is finished, and its record says so: no step is to be made, and nothing has
  /// been told to `metrics`. Alike on all ranks.
  bool has_nothing_to_do() const noexcept {
    return is_told_finished_ && progress_.step >= config_.train.steps;
  }

  /// Why a finished run that was to go on stays as it is: this was asked for before its first step,
  /// and nothing has been told to `metrics`. `none`: it goes on. Alike on all ranks.
  StopReason stop_while_finished() const noexcept { return stop_while_finished_; }

  /// Trains to train.steps, or until a stop is asked for (perhaps during set-up: then no step is
  /// made, and nothing saved that is not already); saves and evaluates as the run file says.
  /// @throws UserError (no_progress) on all ranks, with nothing more saved, when this start does
  ///   not hold the run any more; and as saves do
  RunResult run();

  /// Tries to write where checkpoints will go. For --dry-run.
  void rehearse();

  const Progress& progress() const noexcept { return progress_; }
  /// What this rank updates and saves.
  const parallel::ParameterShard& share() const noexcept { return runner_.share(); }
  const Optimizer& optimizer() const noexcept { return runner_.optimizer(); }
  /// All tensors of this rank in device memory, sealed.
  const device::Arena& memory() const noexcept { return arena_; }
  /// What is elsewhere.
  const StateTier& tier() const noexcept { return runner_.tier(); }
  /// Of the host, for saves and loads: TrainingState::image_bytes().
  std::size_t image_bytes() const noexcept { return state_.image_bytes(); }

 private:
  void resume_or_initialise(const TrainerOptions& options);
  /// Tokens that the model cannot take are a reason not to start.
  void read_first_batches(const Progress& progress);
  /// @param record  of the step, filled in but for what the device has in use
  StepOutcome one_step(telemetry::StepRecord& record);
  /// The batches of the step that is to be made next. Adds to data_s.
  StepBatches load(double& data_s);
  /// Says what memory was planned and what was taken. Collective.
  void report_memory();
  void check_finite(const StepOutcome& outcome);
  /// A loss tells of weights that were lost only one step later. Collective.
  void check_weights();
  void evaluate();
  /// What is asked of the run after the step that was made. Collective.
  Asked ask();
  /// @throws UserError (no_progress)
  void require_not_superseded(StopReason stop) const;
  /// A checkpoint out of turn, unless the step is saved already. Collective.
  void save_as_asked();
  /// What a save saves: makes the state ready, and is sure that it is good. Collective.
  /// @param may_arrive  where all of it is in device memory it is copied beside the next step
  io::SaveRequest save_request(bool may_arrive);
  /// What the flight recorder shows of this rank besides its calls.
  void tell_activity(std::string activity) const;
  /// After a save: what it took of memory, and gives that back.
  void look_after_save();
  double needed_s() const;
  /// What is done every so many steps and after the last one.
  bool is_due_at(std::int64_t step, std::int64_t every_steps) const;

  ResolvedRun run_;
  const runfile::RunConfig& config_;  ///< of run_
  comm::Mesh* mesh_;
  telemetry::MetricsLog* metrics_;
  bool is_told_finished_;
  StopReason stop_while_finished_ = StopReason::none;
  device::Stream stream_;
  device::MemoryWatch memory_watch_;
  device::DeviceMemoryWatch device_watch_;
  device::Arena arena_;
  data::TokenDataset dataset_;
  DataFacts data_facts_;
  std::unique_ptr<data::TokenDataset> validation_;
  std::optional<StepTracer> tracer_;  ///< with log.trace; before what notes its collectives there
  StepRunner runner_;
  /// The arena's, with communicators of the mesh and the runner.
  std::vector<std::unique_ptr<comm::RegisteredMemory>> registered_;
  BatchLoader loader_;
  std::unique_ptr<Evaluator> evaluator_;
  TrainingState state_;
  std::unique_ptr<RunSaves> saves_;
  StopRequest stop_request_;
  Progress progress_;
  std::int64_t validation_step_ = -1;  ///< evaluated last
  double validation_loss_ = 0;
  std::string validation_data_;  ///< of which that is
  LongestOfLast<4> last_steps_;
};

}  // namespace fourfold::train
