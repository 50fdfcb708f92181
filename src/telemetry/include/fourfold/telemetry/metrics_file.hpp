// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// metrics.jsonl: one JSON object per line and record, flushed at once, only ever appended to. Keys
/// are stable; docs/ run-directory.md lists them. A number that is not finite is written as null.
#pragma once

#include <fourfold/io/line_file.hpp>
#include <fourfold/telemetry/metrics.hpp>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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

template <class Record>
struct Timed {
  Record record;
  double unix_time_s = 0;
};

/// What the records of a run say after all its restarts: steps that a restart made again appear
/// once, as made last.
struct RunHistory {
  std::vector<Timed<RunStart>> starts;
  std::vector<Timed<StepRecord>> steps;
  std::vector<Timed<EvalRecord>> evaluations;
  std::vector<Timed<CheckpointRecord>> checkpoints;
  std::optional<Timed<MemoryRecord>> memory;  ///< of the last start that came to its end
  std::optional<Timed<RunEnd>> end;  ///< absent while the run goes on, or when it was killed
  std::int64_t damaged_lines = 0;    ///< lines that could not be read, which a crash leaves behind
};

/// @throws UserError (exit code config) when the file cannot be opened
RunHistory read_metrics(const std::filesystem::path& file);

/// From the text of the file.
RunHistory parse_metrics(std::string_view text);

}  // namespace fourfold::telemetry
