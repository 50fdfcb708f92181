// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "job.hpp"

#include <fourfold/base/log.hpp>
#include <fourfold/batch/finished_file.hpp>
#include <fourfold/runfile/run_config.hpp>
#include <fourfold/telemetry/exit_status.hpp>
#include <fourfold/telemetry/log_dir.hpp>
#include <fourfold/telemetry/status_file.hpp>

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace fourfold::job {
namespace {
namespace fs = std::filesystem;

double now_unix_s() {
  using std::chrono::duration;
  return duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

const char* variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

template <class T>
T number_in(const char* name, T otherwise) {
  const char* const text = variable(name);
  T value = otherwise;
  if (text != nullptr) {
    std::from_chars(text, text + std::strlen(text), value);
  }
  return value;
}

/// This start of this job, as Slurm names it.
batch::Attempt this_attempt() {
  const char* const job = variable("SLURM_JOB_ID");
  const char* const chain = variable("FOURFOLD_CHAIN");
  batch::Attempt attempt;
  attempt.job = job != nullptr ? job : "none";
  // Starts of one job belong together; without a job, nothing does.
  attempt.chain = chain != nullptr ? chain
                  : job != nullptr ? attempt.job
                                   : fmt::format("none-{:.6f}", now_unix_s());
  attempt.restart = number_in<std::int64_t>("SLURM_RESTART_COUNT", 0);
  attempt.nodes = number_in("SLURM_JOB_NUM_NODES", 1);
  attempt.began_unix_s = now_unix_s();
  return attempt;
}

batch::AttemptLog log_in(const fs::path& log_dir) {
  return batch::AttemptLog(log_dir / "attempts.jsonl");
}

/// Whether exit.json is there and was not replaced by an end.
bool says_running(const fs::path& log_dir) {
  std::error_code ignored;
  return fs::exists(telemetry::exit_file(log_dir), ignored) &&
         !telemetry::read_exit_status(telemetry::exit_file(log_dir));
}

}  // namespace

ExitCode begin(const Request& request) {
  const runfile::RunConfig config =
      runfile::load_run_config(request.run_file, request.overrides).config;
  const fs::path log_dir = config.log.dir;
  if (batch::is_finished(log_dir, config.train.steps)) {
    fmt::print("finished\n");
    return ExitCode::finished;
  }
  telemetry::make_log_dir(log_dir);
  batch::Attempt attempt = this_attempt();
  attempt.from_step = telemetry::checkpoint_step_of(log_dir / "status.json");
  const batch::AttemptLog attempts = log_in(log_dir);
  if (const auto refusal =
          batch::refusal(attempts.read(), attempt.chain, attempt.from_step, request.limits)) {
    telemetry::write_exit_status(telemetry::exit_file(log_dir), {.code = refusal->code,
                                                                 .reason = refusal->reason,
                                                                 .step = attempt.from_step,
                                                                 .hold = true});
    throw UserError(refusal->code, refusal->reason);
  }
  std::error_code ignored;  // the run replaces it as well
  fs::remove(telemetry::exit_file(log_dir), ignored);
  attempts.begin(attempt);
  fmt::print("start\n");
  return ExitCode::finished;
}

ExitCode end(const Request& request) {
  const fs::path log_dir = runfile::log_dir_of(request.run_file, request.overrides);
  const batch::AttemptEnd end =
      batch::end_of(telemetry::read_exit_status(telemetry::exit_file(log_dir)),
                    says_running(log_dir), request.launcher_code, now_unix_s());
  log_in(log_dir).end(this_attempt(), end);
  log::info(fmt::format("ended with code {}: {}", static_cast<int>(end.code), end.reason));
  fmt::print("{}\n", end.retry ? "again" : end.code == ExitCode::finished ? "finished" : "stop");
  return end.code;
}

}  // namespace fourfold::job
