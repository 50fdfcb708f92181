// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <filesystem>
#include <utility>

namespace fourfold::telemetry {

/// Where the files of a run lie that several programs know: in its directory, log.dir. What is in
/// them says docs/run-directory.md.
class RunFiles {
 public:
  explicit RunFiles(std::filesystem::path log_dir) : log_dir_(std::move(log_dir)) {}

  std::filesystem::path attempts() const { return log_dir_ / "attempts.jsonl"; }
  /// The script of the run's chain, which its jobs submit again.
  std::filesystem::path chain_script() const { return log_dir_ / "chain.sbatch"; }
  std::filesystem::path config() const { return log_dir_ / "config.toml"; }
  std::filesystem::path exit_status() const { return log_dir_ / "exit.json"; }
  std::filesystem::path finished() const { return log_dir_ / "FINISHED"; }
  std::filesystem::path hang() const { return log_dir_ / "hang.json"; }
  /// Written by the batch script when the end of its job was moved later: the job, its restarts,
  /// and the end in seconds since 1970.
  std::filesystem::path job_end() const { return log_dir_ / ".job-end"; }
  std::filesystem::path metrics() const { return log_dir_ / "metrics.jsonl"; }
  std::filesystem::path report() const { return log_dir_ / "report.html"; }
  /// Made by a person who wants a checkpoint after the step that is being made. The run removes
  /// it.
  std::filesystem::path save() const { return log_dir_ / "SAVE"; }
  std::filesystem::path status() const { return log_dir_ / "status.json"; }
  /// Made by a person who wants no more training. It stays until that person removes it: a run that
  /// finds it saves and stops, and nothing starts meanwhile.
  std::filesystem::path stop() const { return log_dir_ / "STOP"; }
  /// The script of a job without a chain.
  std::filesystem::path submit_script() const { return log_dir_ / "submit.sbatch"; }
  /// A folder for each submission or chain: what it was begun with (batch/kept_run.hpp).
  std::filesystem::path submitted() const { return log_dir_ / "submitted"; }
  std::filesystem::path timeline() const { return log_dir_ / "timeline.svg"; }
  std::filesystem::path trace() const { return log_dir_ / "trace.json"; }

  /// Those that a start replaces whole: one that was killed may have left an unfinished sibling.
  std::array<std::filesystem::path, 8> replaced_whole() const {
    return {config(), exit_status(), finished(), hang(), report(), status(), timeline(), trace()};
  }

 private:
  std::filesystem::path log_dir_;
};

}  // namespace fourfold::telemetry
