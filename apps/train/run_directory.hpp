// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/error.hpp>
#include <fourfold/train/metrics.hpp>
#include <fourfold/train/run_config.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

namespace fourfold::train_program {

/// The newest step and checkpoint that the metrics spoke of.
struct LastState {
  std::int64_t step = 0;
  std::string checkpoint;
};

/// The folder that a run writes about itself into (log.dir), and the terminal. Rank 0 has one.
class RunDirectory {
 public:
  /// Makes the folder, writes config.toml, opens the metrics.
  /// @param dry_run  touches no file; the terminal alone
  /// @throws UserError (cannot_write)
  RunDirectory(const train::EffectiveConfig& effective, bool dry_run);
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  train::MetricsLog& metrics() noexcept { return metrics_; }

  /// The run's end: last record, exit.json, report.
  void finish(const train::RunEnd& end, const std::string& checkpoint);
  /// The same for a run that an error ends: exit.json says it, with the newest checkpoint known.
  void fail(const Error& error) noexcept;

 private:
  std::filesystem::path folder_;
  bool report_;
  bool dry_run_;
  train::MetricsLog metrics_;
  std::shared_ptr<LastState> last_;
};

/// exit.json from a rank that has no RunDirectory: rank 0 may never learn of this error. When rank
/// 0 fails too, its word is the later one or says the same.
void record_failure(const std::filesystem::path& folder, const Error& error) noexcept;

}  // namespace fourfold::train_program
