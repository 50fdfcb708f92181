// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// metrics.jsonl: one JSON object per line and record, flushed at once, only ever appended to. Keys
/// are stable; docs/ run-directory.md lists them. A number that is not finite is written as null.
#pragma once

#include <fourfold/io/line_file.hpp>
#include <fourfold/telemetry/metrics.hpp>

#include <filesystem>
#include <utility>

namespace fourfold::telemetry {

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

}  // namespace fourfold::telemetry
