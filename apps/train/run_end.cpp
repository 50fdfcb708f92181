// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "run_end.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/io/atomic_file.hpp>
#include <fourfold/telemetry/log_dir.hpp>
#include <fourfold/telemetry/report.hpp>
#include <fourfold/telemetry/run_files.hpp>
#include <fourfold/train/stop_request.hpp>

#include <exception>
#include <functional>
#include <span>

namespace fourfold::train_program {

void try_to(const char* what, const std::function<void()>& write) {
  try {
    write();
  } catch (const std::exception& error) {
    log::warning(format_message("cannot {}: {}", what, error.what()));
  }
}

void LastStateSink::start(const telemetry::RunStart& run, double /*unix_time_s*/) {
  last_->change([&](LastState& last) { last = {run.first_step, run.checkpoint}; });
}

void LastStateSink::step(const telemetry::StepRecord& record, double /*unix_time_s*/) {
  last_->change([&](LastState& last) { last.step = record.step; });
}

void LastStateSink::checkpoint(const telemetry::CheckpointRecord& record, double /*unix_time_s*/) {
  last_->change([&](LastState& last) { last.checkpoint = record.path; });
}

void end_metrics(telemetry::MetricsLog& metrics, const telemetry::ExitStatus& status) {
  metrics.end({.step = status.step.value_or(0), .code = status.code, .reason = status.reason});
}

void write_run_end(const std::filesystem::path& log_dir, const telemetry::ExitStatus& status,
                   telemetry::MetricsLog& metrics, bool report) {
  std::exception_ptr first;
  try {
    telemetry::write_exit_status(telemetry::RunFiles(log_dir).exit_status(), status);
  } catch (const Error&) {
    first = std::current_exception();
  }
  try_to("write the end of the metrics", [&] { end_metrics(metrics, status); });
  if (report) {
    try_to("write the report", [&] {
      const telemetry::ReportedRun run = telemetry::load_reported_run(log_dir);
      const std::filesystem::path file = telemetry::RunFiles(log_dir).report();
      telemetry::write_report(file, std::span(&run, 1));
      log::info(format_message("report: {}", file.string()));
    });
  }
  if (first) {
    std::rethrow_exception(first);
  }
}

void write_hang(const std::filesystem::path& log_dir, const comm::HangDiagnosis& verdict,
                const std::string& report, const LastState& last) {
  try_to("write hang.json", [&] {
    io::AtomicFile file(telemetry::RunFiles(log_dir).hang());
    file.write(report);
    file.publish();
  });
  try_to("write exit.json", [&] {
    telemetry::write_exit_status(telemetry::RunFiles(log_dir).exit_status(),
                                 {.code = verdict.code(),
                                  .reason = "hang: " + verdict.reason,
                                  .step = last.step,
                                  .checkpoint = last.checkpoint,
                                  .bad_nodes = verdict.bad_hosts(),
                                  .told_to_stop = train::StopSignals::was_asked()});
  });
}

}  // namespace fourfold::train_program
