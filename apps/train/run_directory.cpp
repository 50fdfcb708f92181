// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "run_directory.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/io/atomic_file.hpp>
#include <fourfold/train/exit_status.hpp>
#include <fourfold/train/metrics_file.hpp>
#include <fourfold/train/progress.hpp>
#include <fourfold/train/report.hpp>
#include <fourfold/train/status_file.hpp>
#include <fourfold/train/tensorboard_file.hpp>

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

namespace fourfold::train_program {
namespace {

void make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    throw UserError(ExitCode::cannot_write,
                    fmt::format("cannot make the run directory {} ({}) name another log.dir",
                                folder.string(), error.message()));
  }
}

/// Remembers where the run is, for an exit.json written after an error.
class LastStateSink : public train::MetricSink {
 public:
  explicit LastStateSink(std::shared_ptr<LastState> last) : last_(std::move(last)) {}
  void start(const train::RunStart& run, double /*unix_time_s*/) override {
    *last_ = {.step = run.first_step, .checkpoint = run.checkpoint};
  }
  void step(const train::StepRecord& record, double /*unix_time_s*/) override {
    last_->step = record.step;
  }
  void checkpoint(const train::CheckpointRecord& record, double /*unix_time_s*/) override {
    last_->checkpoint = record.path;
  }

 private:
  std::shared_ptr<LastState> last_;
};

}  // namespace

RunDirectory::RunDirectory(const train::EffectiveConfig& effective, bool dry_run)
    : folder_(effective.config.log.dir),
      report_(effective.config.log.report),
      dry_run_(dry_run),
      metrics_(effective.config.log.every_steps),
      last_(std::make_shared<LastState>()) {
  metrics_.add(std::make_unique<LastStateSink>(last_));
  auto console = std::make_unique<train::Console>(stderr, effective.config.log.progress);
  log::set_sink(console->log_sink());
  metrics_.add(std::move(console));
  for (const std::string& warning : effective.warnings) {
    log::warning(warning);
  }
  if (dry_run) {
    return;
  }
  make_folder(folder_);
  io::AtomicFile config(folder_ / "config.toml");
  config.write(train::print_run_config(effective));
  config.publish();
  metrics_.add(std::make_unique<train::MetricsFile>(folder_ / "metrics.jsonl"));
  metrics_.add(std::make_unique<train::StatusFile>(folder_ / "status.json"));
  if (effective.config.log.tensorboard) {
    metrics_.add(std::make_unique<train::TensorBoardFile>(folder_));
  }
}

RunDirectory::~RunDirectory() {
  log::set_sink({});
}

void RunDirectory::finish(const train::RunEnd& end, const std::string& checkpoint) {
  metrics_.end(end);
  if (dry_run_) {
    return;
  }
  train::write_exit_status(folder_ / "exit.json", {.code = static_cast<ExitCode>(end.code),
                                                   .reason = end.reason,
                                                   .step = end.step,
                                                   .checkpoint = checkpoint,
                                                   .bad_nodes = {}});
  if (report_) {
    const train::ReportedRun run = train::load_reported_run(folder_);
    train::write_report(folder_ / "report.html", std::span(&run, 1));
    log::info(fmt::format("report: {}", (folder_ / "report.html").string()));
  }
}

void RunDirectory::fail(const Error& error) noexcept {
  try {
    metrics_.flush();  // so that the last step is known
    finish({.step = last_->step, .code = static_cast<int>(error.code()), .reason = error.what()},
           last_->checkpoint);
  } catch (const std::exception& second) {  // the first error is the one to report
    log::warning(fmt::format("cannot write exit.json: {}", second.what()));
  }
}

void record_failure(const std::filesystem::path& folder, const Error& error) noexcept {
  try {
    train::ExitStatus status;
    status.code = error.code();
    status.reason = error.what();
    if (const auto earlier = train::read_exit_status(folder / "exit.json")) {
      status.checkpoint = earlier->checkpoint;
    }
    train::write_exit_status(folder / "exit.json", status);
  } catch (const std::exception& second) {
    log::local(log::Level::warning, fmt::format("cannot write exit.json: {}", second.what()));
  }
}

}  // namespace fourfold::train_program
