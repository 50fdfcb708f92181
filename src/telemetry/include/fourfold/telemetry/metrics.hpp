// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What a run says about itself while it trains. The trainer fills in records and hands them to a
/// MetricsLog on rank 0; sinks carry them to metrics.jsonl, status.json, the TensorBoard file and
/// the terminal. Nothing here is collective: every number is already the number of the whole run,
/// not of one rank.
///
/// Losses are in nats per target token (natural logarithm); bits per token = loss / ln 2, and with
/// the byte tokenizer that is bits per byte.
#pragma once

#include <fourfold/base/error.hpp>
#include <fourfold/io/event_file.hpp>
#include <fourfold/io/line_file.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fourfold::telemetry {

/// Facts that hold from here to the next restart. Sent once, before the first step.
struct RunStart {
  /// completed steps at this point: 0 for a new run, else the restart's checkpoint
  std::int64_t first_step = 0;
  std::int64_t steps = 0;  ///< completed steps at which the run is finished
  std::string checkpoint;  ///< where the state came from; empty for a new run
  std::string version;     ///< of fourfold
  std::string mesh;        ///< "pp1 dp4 cp1 tp1"
  std::string device;      ///< what the kernels run on, for the report
  std::string precision;   ///< "f32", "bf16" or "f16"
  /// host name of each rank, by rank; its size is the number of ranks
  std::vector<std::string> rank_hosts;
  std::int64_t parameters = 0;       ///< elements of all parameters
  std::int64_t tokens_per_step = 0;  ///< global_batch * context
  /// that a rank hands to others with the same parameters, per step on average: gradients, and
  /// weights where replicas train by themselves; 0: not known
  std::int64_t data_plane_bytes = 0;
  double flop_per_token = 0;   ///< of the model, forward and backward: model::flops_per_token()
  double peak_flop_per_s = 0;  ///< of a rank's device, for MFU; 0: not known
  /// name and version, in the order to be shown
  std::vector<std::pair<std::string, std::string>> libraries;
  double deadline_unix_s = 0;  ///< when the job must end, seconds since 1970; 0: unknown
};

/// One step.
struct StepRecord {
  std::int64_t step = 0;  ///< completed updates: 1 after the first one
  double loss = 0;  ///< training loss of this step, nats, mean over the targets of the global batch
  double grad_norm = 0;  ///< global L2 norm before clipping
  double lr = 0;         ///< rate this update was made with
  /// target tokens of the whole run up to and with this step, all restarts
  std::int64_t tokens = 0;
  /// wall time of one step, mean since the record before; without evaluation and checkpoints
  double step_s = 0;
  double tokens_per_s = 0;  ///< target tokens per second of that time, all ranks together
  double data_s = 0;        ///< part of step_s that rank 0 spent waiting for its batch
  /// what the loss of this step was multiplied by; 0 when the precision needs no such thing
  double loss_scale = 0;
  /// of the whole run up to and with this step: those that overflowed and changed nothing
  std::int64_t skipped_steps = 0;
  /// model FLOP per second over the peak of all ranks' devices; MetricsLog fills it in where
  /// RunStart has both, else 0
  double mfu = 0;
  /// of rank 0's device, of all that use it; 0 in records of steps after which nobody looked
  std::int64_t device_used_bytes = 0;
  std::int64_t device_total_bytes = 0;
};

/// What is shown of a run's newest step from outside; nothing: it is not known.
struct NewestStep {
  std::optional<double> loss = {};  ///< nats per token
  std::optional<double> tokens_per_s = {};
  std::optional<double> mfu = {};  ///< a share: 0.41
  std::optional<double> step_s = {};
};

/// One evaluation on held-back data.
struct EvalRecord {
  std::int64_t step = 0;
  double loss = 0;          ///< nats per token, mean over the targets seen
  std::int64_t tokens = 0;  ///< targets it was measured on
  double eval_s = 0;        ///< wall time
};

/// One committed checkpoint.
struct CheckpointRecord {
  std::int64_t step = 0;
  std::string path;
  std::int64_t bytes = 0;
  double save_s = 0;       ///< time for which training stood still
  double committed_s = 0;  ///< from its begin until it was on stable storage
  double longest_s = 0;    ///< of the last saves' committed_s: what the next one may take
};

/// What one rank was to take of memory and what it took: the rank that took most of all. Where
/// devices have memory of their own it is that memory which is planned and taken.
struct MemoryRecord {
  std::int64_t step = 0;
  int rank = 0;
  std::vector<std::pair<std::string, std::int64_t>> planned_bytes = {};  ///< by use: "weights", ...
  std::int64_t taken_bytes = 0;        ///< the most since before its tensors were made
  std::int64_t device_used_bytes = 0;  ///< of its device at the end, of all that use it
  std::int64_t device_total_bytes = 0;
  std::int64_t all_planned_bytes() const;
};

/// The last word: same code and reason as exit.json.
struct RunEnd {
  std::int64_t step = 0;
  ExitCode code = ExitCode::finished;
  std::string reason;
};

/// One destination. Overrides what it cares about. `unix_time_s` is the wall clock at which the
/// record was made.
class MetricSink {
 public:
  virtual ~MetricSink() = default;
  virtual void start(const RunStart& /*run*/, double /*unix_time_s*/) {}
  virtual void step(const StepRecord& /*record*/, double /*unix_time_s*/) {}
  virtual void evaluation(const EvalRecord& /*record*/, double /*unix_time_s*/) {}
  virtual void checkpoint(const CheckpointRecord& /*record*/, double /*unix_time_s*/) {}
  virtual void memory(const MemoryRecord& /*record*/, double /*unix_time_s*/) {}
  virtual void end(const RunEnd& /*record*/, double /*unix_time_s*/) {}
};

/// Stamps each record with the time and passes it to all sinks, in the order they were added.
/// Sinks that write or show exist on rank 0 only. One that cannot begin is an error of start(); one
/// that fails later (a full disk) is left out with a warning: no log is worth a run.
class MetricsLog {
 public:
  using Clock = std::function<double()>;  ///< seconds since 1970
  /// @param every_steps  steps between those that are passed on (log.every_steps): times and speed
  ///   are then means since the one before. The first and the last step of a start are always
  ///   passed on. At least 1
  /// @param clock        for tests; the default is the system clock
  explicit MetricsLog(std::int64_t every_steps = 1, Clock clock = {});

  void add(std::unique_ptr<MetricSink> sink);
  /// What is recorded while `may_write` says no reaches no sink. Asked once per record.
  void only_while(std::function<bool()> may_write) { may_write_ = std::move(may_write); }

  void start(const RunStart& run);
  /// To be called for every step.
  void step(const StepRecord& record);
  void evaluation(const EvalRecord& record);
  void checkpoint(const CheckpointRecord& record);
  void memory(const MemoryRecord& record);
  void end(const RunEnd& record);

  /// Passes on the step that was made last, if it has not been yet; end() does it too.
  void flush();

 private:
  void pass_on(const std::function<void(MetricSink&)>& call);

  std::int64_t every_steps_;
  Clock clock_;
  std::function<bool()> may_write_;
  std::vector<std::unique_ptr<MetricSink>> sinks_;
  std::int64_t first_step_ = 0;
  std::int64_t steps_ = 0;
  double mfu_of_rate_ = 0;  ///< MFU of one token per second; 0: not known
  /// the latest step, with sums over pending_steps_ in step_s, data_s and tokens_per_s
  StepRecord pending_;
  double pending_steps_ = 0;  ///< a whole number, to divide by
};

// metrics.jsonl: one JSON object per line and record, flushed at once, only ever appended to. Keys
// are stable; docs/ run-directory.md lists them. A number that is not finite is written as null.

/// Appends each record to metrics.jsonl:
/// {"event":"start"|"resume"|"step"|"eval"|"checkpoint"|"memory"|"end","time":...,...}.
class MetricsFile : public MetricSink {
 public:
  /// Touches nothing yet: the first record opens the file for appending, so that a start that is
  /// refused leaves none. A last line that was cut off by a crash is closed first. Every record
  /// throws UserError (exit code cannot_write) when it cannot be written.
  explicit MetricsFile(std::filesystem::path file)
      : file_(std::move(file), "choose another log.dir") {}

  void start(const RunStart& run, double unix_time_s) override;
  void step(const StepRecord& record, double unix_time_s) override;
  void evaluation(const EvalRecord& record, double unix_time_s) override;
  void checkpoint(const CheckpointRecord& record, double unix_time_s) override;
  void memory(const MemoryRecord& record, double unix_time_s) override;
  void end(const RunEnd& record, double unix_time_s) override;

 private:
  io::LineFile file_;
};

/// The records as TensorBoard curves: train/loss, train/grad_norm, train/lr, validation/loss,
/// speed/tokens_per_s, speed/step_s, speed/data_s, speed/mfu, memory/device_used_gib. Each start
/// opens a new event file, and a restart makes TensorBoard forget the steps that are done again.
/// Numbers are stored as f32.
/// @throws UserError (exit code cannot_write) from every call that writes
class TensorBoardFile : public MetricSink {
 public:
  explicit TensorBoardFile(std::filesystem::path directory) : directory_(std::move(directory)) {}

  void start(const RunStart& run, double unix_time_s) override;
  /// @pre start() was called
  void step(const StepRecord& record, double unix_time_s) override;
  /// @pre start() was called
  void evaluation(const EvalRecord& record, double unix_time_s) override;

 private:
  std::filesystem::path directory_;
  std::optional<io::EventFile> file_;
};

}  // namespace fourfold::telemetry
