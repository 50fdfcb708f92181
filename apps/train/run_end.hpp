// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/watchdog.hpp>
#include <fourfold/telemetry/exit_status.hpp>
#include <fourfold/telemetry/metrics.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace fourfold::train_program {

/// The newest step and checkpoint that the metrics spoke of; nothing before their start.
struct LastState {
  std::optional<std::int64_t> step;
  std::optional<std::string> checkpoint;
};

/// A LastState that another thread may ask for.
class SharedLastState {
 public:
  LastState get() const {
    const std::scoped_lock lock(mutex_);
    return state_;
  }
  template <class Change>
  void change(const Change& change) {
    const std::scoped_lock lock(mutex_);
    change(state_);
  }

 private:
  mutable std::mutex mutex_;
  LastState state_;
};

/// Keeps a LastState. To be added before sinks that can fail.
class LastStateSink : public telemetry::MetricSink {
 public:
  explicit LastStateSink(std::shared_ptr<SharedLastState> last) : last_(std::move(last)) {}
  void start(const telemetry::RunStart& run, double unix_time_s) override;
  void step(const telemetry::StepRecord& record, double unix_time_s) override;
  void checkpoint(const telemetry::CheckpointRecord& record, double unix_time_s) override;

 private:
  std::shared_ptr<SharedLastState> last_;
};

/// Warns of what cannot be written. @param what  "write the report"
void try_to(const char* what, const std::function<void()>& write);

/// The last record of the metrics.
void end_metrics(telemetry::MetricsLog& metrics, const telemetry::ExitStatus& status);

/// Everything that rank 0 writes when a run ends, in this order: exit.json, which batch scripts
/// trust; the last records of the metrics; report.html, if wanted. What fails after exit.json is
/// written is a warning, for exit.json and the exit code have to say the same.
/// @throws UserError (cannot_write) when exit.json cannot be written; the others were tried then
void write_run_end(const std::filesystem::path& log_dir, const telemetry::ExitStatus& status,
                   telemetry::MetricsLog& metrics, bool report);

/// hang.json, and exit.json with the verdict. What cannot be written is a warning.
void write_hang(const std::filesystem::path& log_dir, const comm::HangDiagnosis& verdict,
                const std::string& report, const LastState& last);

}  // namespace fourfold::train_program
