// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/telemetry/console.hpp>
#include <fourfold/telemetry/metrics.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <utility>

namespace fourfold::telemetry {

/// status.json: where the run is now, for a look from outside without touching the job. Replaced
/// atomically, at most every five seconds and at every evaluation, checkpoint and end:
/// {"state":"running"|"ended","step","steps","loss","validation_loss","tokens_per_s","remaining_s","checkpoint",
/// "checkpoint_step","updated","code","reason"}. Unknown numbers are null.
class StatusFile : public MetricSink {
 public:
  /// @throws UserError (exit code cannot_write) from every call that writes
  explicit StatusFile(std::filesystem::path file) : path_(std::move(file)) {}

  void start(const RunStart& run, double unix_time_s) override;
  void step(const StepRecord& record, double unix_time_s) override;
  void evaluation(const EvalRecord& record, double unix_time_s) override;
  void checkpoint(const CheckpointRecord& record, double unix_time_s) override;
  void end(const RunEnd& record, double unix_time_s) override;

 private:
  void write(double unix_time_s, const RunEnd* end);

  std::filesystem::path path_;
  RemainingTime remaining_;
  std::int64_t steps_ = 0;
  StepRecord last_step_;
  std::optional<double> validation_loss_;
  CheckpointRecord last_checkpoint_;
  double written_s_ = 0;
};

/// Step of the newest checkpoint that a status.json names; nothing when it names none, is absent or
/// damaged.
std::optional<std::int64_t> checkpoint_step_of(const std::filesystem::path& status_file);

}  // namespace fourfold::telemetry
