// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/telemetry/metrics.hpp>
#include <fourfold/telemetry/step_curve.hpp>
#include <fourfold/telemetry/value_distribution.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace fourfold::telemetry {

template <class Record>
struct Timed {
  Record record;
  double unix_time_s = 0;
};

/// What a report says of a run: facts, curves and statistics of its records, in a few megabytes
/// however many there are. Gets what counts after all restarts, in order (MetricsReader).
class RunHistory : public MetricSink {
 public:
  /// Tables of starts and of checkpoints have so many rows, the last ones.
  static constexpr std::size_t most_rows = 1000;

  /// One row of the table of starts.
  struct Start {
    double unix_time_s = 0;
    std::string mesh;
    std::string checkpoint;  ///< empty: a new run
    std::int64_t first_step = 0;
    std::int64_t steps = 0;
    std::size_t ranks = 0;
  };

  /// At least as many as will come of each.
  explicit RunHistory(std::int64_t most_steps, std::int64_t most_evaluations = 0);
  RunHistory() : RunHistory(0) {}

  void start(const RunStart& run, double unix_time_s) override;
  void step(const StepRecord& record, double unix_time_s) override;
  void evaluation(const EvalRecord& record, double unix_time_s) override;
  void checkpoint(const CheckpointRecord& record, double unix_time_s) override;
  void memory(const MemoryRecord& record, double unix_time_s) override;
  void end(const RunEnd& record, double unix_time_s) override;

  std::int64_t steps() const noexcept { return step_times.count(); }
  /// Of a number of the steps.
  const StepCurve& curve(double StepRecord::*number) const;
  /// Mean loss of the last tenth of the steps, at most 50; NaN without any.
  double loss_at_end() const;

  std::optional<Timed<RunStart>> first_start;  ///< without hosts and libraries
  std::optional<Timed<RunStart>> last_start;
  std::deque<Start> starts;  ///< the last ones
  std::int64_t all_starts = 0;
  std::optional<StepRecord> last_step;
  std::optional<std::int64_t> skipped_steps;  ///< none when the precision cannot
  ValueDistribution step_times;
  ValueDistribution rates;         ///< tokens/s
  ValueDistribution utilizations;  ///< MFU, of the steps that have one
  StepCurve validation;
  double best_validation = std::numeric_limits<double>::quiet_NaN();
  std::int64_t best_validation_step = 0;
  std::deque<Timed<CheckpointRecord>> checkpoints;  ///< the last ones
  std::int64_t all_checkpoints = 0;
  std::optional<Timed<MemoryRecord>> last_memory;  ///< of the last start that came to its end
  std::optional<Timed<RunEnd>> last_end;  ///< absent while the run goes on, or when it was killed
  std::int64_t damaged_lines = 0;  ///< lines that could not be read, which a crash leaves behind

 private:
  std::vector<StepCurve> curves_;  ///< by place in step_fields; of whole numbers empty
  std::deque<double> last_losses_;
};

/// That of a metrics.jsonl. @throws UserError as MetricsReader, config also with what it may be
/// that has been named
RunHistory read_history(const std::filesystem::path& metrics_file);

}  // namespace fourfold::telemetry
