// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/io/event_file.hpp>
#include <fourfold/telemetry/metrics.hpp>

#include <filesystem>
#include <optional>
#include <utility>

namespace fourfold::telemetry {

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
