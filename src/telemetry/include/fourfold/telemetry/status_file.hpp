// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/error.hpp>
#include <fourfold/telemetry/console.hpp>
#include <fourfold/telemetry/metrics.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace fourfold::telemetry {

/// status.json: where the run is now, for a look from outside without touching the job. Replaced
/// atomically, at most every five seconds and at every evaluation, checkpoint and end:
/// {"state":"running"|"ended","step","steps","loss","validation_loss","tokens_per_s","mfu","step_s",
/// "remaining_s","deadline","checkpoint","checkpoint_step","longest_save_s","updated","code",
/// "reason"}. Unknown numbers are null; "deadline" (when the job must end) and "updated" are
/// seconds since 1970.
class StatusFile : public MetricSink {
 public:
  /// @throws UserError (exit code cannot_write) from every call that writes
  /// "longest_save_s" of a file that is there already is kept until this start has saved.
  explicit StatusFile(std::filesystem::path file);

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
  double deadline_unix_s_ = 0;
  StepRecord last_step_;
  std::optional<double> validation_loss_;
  CheckpointRecord last_checkpoint_;
  double written_s_ = 0;
};

/// Whether text is, as a whole, what a StatusFile writes, of this version or an earlier one.
bool is_status_text(std::string_view text);

/// What a status.json says. Its writer may have died, and the file may be of another version or
/// damaged: whatever is absent or cannot be true (a negative step, say) is nothing, 0 or empty.
struct RunStatus : NewestStep {
  bool ended = false;
  std::int64_t step = 0;
  std::int64_t steps = 0;  ///< completed steps at which the run is finished; 0: not known
  std::optional<double> validation_loss = {};
  std::optional<double> remaining_s = {};  ///< at the time of `updated_unix_s`
  std::optional<double> deadline_unix_s = {};
  std::string checkpoint = {};
  std::optional<std::int64_t> checkpoint_step = {};
  double updated_unix_s = 0;
  std::optional<ExitCode> code = {};
  std::string reason = {};
};

/// Nothing when there is no such file, or it is no JSON object or does not say when it was written.
std::optional<RunStatus> read_status(const std::filesystem::path& status_file);

/// Step of the newest checkpoint that a status.json names; nothing when it names none, is absent or
/// damaged.
std::optional<std::int64_t> checkpoint_step_of(const std::filesystem::path& status_file);

/// The longest of the last saves that a status.json tells of, in seconds; 0: not known.
double longest_save_s_of(const std::filesystem::path& status_file);

}  // namespace fourfold::telemetry
