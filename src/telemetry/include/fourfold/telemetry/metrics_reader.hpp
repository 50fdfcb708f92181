// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/io/line_reader.hpp>
#include <fourfold/telemetry/metrics.hpp>

#include <cstdint>
#include <filesystem>
#include <map>

namespace fourfold::telemetry {

/// Reads metrics.jsonl, of any size in a few megabytes of memory: once to see where the run was
/// started again, and once to pass on what counts after that. It may be read while the run goes on;
/// the reader sees what was there when it was made. Local; one thread per object.
class MetricsReader {
 public:
  /// The first reading. @throws UserError: config when the file cannot be opened or is no regular
  /// file; data_corrupt when it cannot be read
  explicit MetricsReader(const std::filesystem::path& file);

  /// As many as replay() passes on, or more: those that a restart made again count twice.
  std::int64_t most_steps() const noexcept { return step_lines_; }
  std::int64_t most_evaluations() const noexcept { return evaluation_lines_; }

  /// The second reading: passes each record on, in the order of the file, with the time it was made
  /// at. Steps, evaluations and checkpoints that a restart made again come once, as made last; of
  /// several runs in one directory comes the last one. A number that is not finite is NaN.
  /// @return lines that could not be read, which a crash leaves behind
  /// @throws UserError (data_corrupt) when the file cannot be read, and what `sink` throws
  std::int64_t replay(MetricSink& sink);

 private:
  io::LineReader lines_;
  /// By the number of its line, from 0: the step that a start goes on from; <= 0: a new run.
  std::map<std::int64_t, std::int64_t> starts_;
  std::int64_t step_lines_ = 0;
  std::int64_t evaluation_lines_ = 0;
};

}  // namespace fourfold::telemetry
