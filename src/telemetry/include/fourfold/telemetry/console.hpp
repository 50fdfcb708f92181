// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What a person sees while a run goes on: a bar on a terminal, one line per record elsewhere.
#pragma once

#include <fourfold/base/log.hpp>
#include <fourfold/runfile/run_config.hpp>
#include <fourfold/telemetry/metrics.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

namespace fourfold::telemetry {

/// How long the rest of the run takes: remaining steps times an exponential mean of the step time
/// (time constant 50 steps; a step counts as at most four means), plus the mean time per step that
/// went into evaluation, checkpoints and the like. The first three steps after a start are left
/// out: they warm up caches and allocators.
class RemainingTime {
 public:
  void start(std::int64_t first_step, std::int64_t steps, double now_s);
  void step(std::int64_t step, double step_s, double now_s);
  /// Seconds until the last step; nothing before there is a measurement.
  std::optional<double> remaining_s() const;

 private:
  std::int64_t first_step_ = 0;
  std::int64_t steps_ = 0;
  std::int64_t anchor_step_ = 0;  ///< from here on steps are counted
  double anchor_s_ = 0;
  std::int64_t last_step_ = 0;
  double last_s_ = 0;
  double mean_step_s_ = 0;
  double busy_s_ = 0;  ///< in steps since the anchor
};

/// What the log line shows besides the record itself.
struct LineContext {
  std::int64_t steps = 0;
  int ranks = 1;
  double now_s = 0;                   ///< seconds since 1970
  double deadline_unix_s = 0;         ///< 0: unknown
  std::optional<double> remaining_s;  ///< nothing: not known yet
  /// when the last checkpoint was committed, seconds since 1970
  std::optional<double> last_checkpoint_s;
  /// of the newest record that has them
  std::int64_t device_used_bytes = 0;
  std::int64_t device_total_bytes = 0;
};

/// "step 120/20000 0.6% loss 3.4121 gnorm 1.02 lr 6.00e-04 tok/s 1.23M (153k/rank) mfu 41.3%
/// 812ms data 1% hbm 61.2/79.6GiB ckpt 41.0s ago eta 4h12m"; loss in nats per token; mfu and hbm
/// where they are known.
std::string step_line(const StepRecord& record, const LineContext& context);
/// "[============>           ] step 120/240 50.0% ...": the same after a bar. What has no room in
/// `columns` is left out, and the bar made shorter, the least important first: step, time left,
/// tokens per second and loss stay longest.
std::string bar_line(const StepRecord& record, const LineContext& context, std::size_t columns);

/// Whether it is a terminal that can move its cursor: TERM is neither unset nor "dumb".
bool is_moving_terminal(std::FILE* out);

/// What --progress=auto means here: a bar when `out` is_moving_terminal(), else lines. Other modes
/// stay.
ProgressMode resolve_progress(ProgressMode mode, std::FILE* out);

/// Shows records on a terminal or in a log file. Exists on rank 0 only; safe to use from several
/// threads, so that other log lines can go through it too.
class Console : public MetricSink {
 public:
  /// @param out   usually stderr; borrowed
  /// @param mode  automatic is resolved with resolve_progress()
  Console(std::FILE* out, ProgressMode mode);
  ~Console() override;  ///< ends the line of a bar

  void start(const RunStart& run, double unix_time_s) override;
  void step(const StepRecord& record, double unix_time_s) override;
  void evaluation(const EvalRecord& record, double unix_time_s) override;
  void checkpoint(const CheckpointRecord& record, double unix_time_s) override;
  void end(const RunEnd& record, double unix_time_s) override;

  /// For log::set_sink(): lines appear above the bar, with the time in front. Valid after the
  /// console is gone. Shows debug lines never, and with mode `none` warnings and errors only.
  log::Sink log_sink() const;

 private:
  class Screen;
  std::shared_ptr<Screen> screen_;
  ProgressMode mode_;
  RemainingTime remaining_;
  LineContext context_;
};

}  // namespace fourfold::telemetry
