// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "chain_run.hpp"
#include "job.hpp"
#include "slurm_answers.hpp"

#include <fourfold/base/clock.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/process_identity.hpp>
#include <fourfold/base/regular_file.hpp>
#include <fourfold/batch/chain.hpp>
#include <fourfold/batch/kept_run.hpp>
#include <fourfold/io/directory_lease.hpp>
#include <fourfold/io/step_place.hpp>
#include <fourfold/program/checkpoint_option.hpp>
#include <fourfold/program/print.hpp>
#include <fourfold/runfile/run_config.hpp>
#include <fourfold/telemetry/exit_status.hpp>
#include <fourfold/telemetry/log_dir.hpp>
#include <fourfold/telemetry/own_files.hpp>
#include <fourfold/telemetry/run_files.hpp>
#include <fourfold/telemetry/status_file.hpp>
#include <fourfold/train/first_look.hpp>
#include <fourfold/train/load_run.hpp>

#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>

namespace fourfold::job {
namespace {
namespace fs = std::filesystem;

/// Both leases that a run needs. What has to be waited for, if somebody has left them, is
/// waited for here, by one process, and once. A start that is refused leaves them as it found them.
class HeldRun {
 public:
  HeldRun(const runfile::RunConfig& config, const std::function<void()>& before_overtaking)
      : log_dir_(telemetry::take_run_lease(config.log.dir, before_overtaking)) {
    std::error_code ignored;
    io::refuse_step_as_directory(config.checkpoint.dir);
    if (fs::is_directory(config.checkpoint.dir, ignored)) {
      checkpoint_dir_.emplace(config.checkpoint.dir, io::LeaseHolder::this_process(),
                              io::LeaseOptions{.gone = log_dir_->left_by(),
                                               .before_overtaking = before_overtaking,
                                               .provisional = true});
    }
  }

  void confirm() {
    log_dir_->confirm();
    if (checkpoint_dir_) {
      checkpoint_dir_->confirm();
    }
  }

 private:
  std::unique_ptr<io::DirectoryLease> log_dir_;
  std::optional<io::DirectoryLease> checkpoint_dir_;
};

/// Words of train that change nothing of what it does.
bool speak_of_progress(const std::vector<std::string>& words) {
  constexpr std::string_view option = "--progress";
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == option) {
      ++i;  // its value
    } else if (!words[i].starts_with("--progress=")) {
      return false;
    }
  }
  return true;
}

/// For a script that does not wait for its launcher, or chooses nodes.
std::string file_lines(const Request& request, const runfile::RunConfig& config) {
  if (!request.tell_files) {
    return {};
  }
  const std::string& node_local_dir = config.checkpoint.node_local_dir;
  return fmt::format(
      "--exit-file\n{}\n{}", whole_path(telemetry::RunFiles(config.log.dir).exit_status()).string(),
      node_local_dir.empty() ? "" : fmt::format("--node-local-dir\n{}\n", node_local_dir));
}

/// A start's line in attempts.jsonl, written once, when nothing speaks against the start any more.
/// Before a lease is taken from an earlier start that lives on where its node's slurmd died: that
/// one ends when it notices, and its script must find who has gone on.
class BegunAttempt {
 public:
  /// @param keep  keeps the run; called when nothing speaks against the start, and nothing is kept
  BegunAttempt(const fs::path& log_dir, const Request& request, const ChosenStart& chosen,
               std::optional<batch::KeptRun> kept,
               std::function<std::optional<batch::KeptRun>()> keep)
      : files_(log_dir),
        request_(request),
        chosen_(chosen),
        kept_(std::move(kept)),
        keep_(std::move(keep)) {}

  void note() {
    if (is_noted_) {
      return;
    }
    batch::Attempt attempt = this_attempt();
    attempt.from_step = telemetry::checkpoint_step_of(files_.status());
    const batch::AttemptLog attempts(files_.attempts());
    const telemetry::ExitRecord left = telemetry::read_exit(files_.exit_status());
    attempt.exit_unix_s = left.unix_s;
    const auto status = telemetry::read_status(files_.status());
    // First: it may be an end that no other start mends.
    note_earlier_jobs(attempts, attempt, left, status ? status->updated_unix_s : 0);
    if (const auto refusal = batch::refusal(attempts.read().attempts, attempt, request_.limits)) {
      throw *refusal;
    }
    if (!kept_) {
      kept_ = keep_();
    }
    attempt.idle_nodes = chosen_.idle_nodes;
    attempt.idle_with_nodes = chosen_.idle_with_nodes;
    attempt.no_next = request_.no_next;
    attempt.run_file = kept_ ? kept_->run_file().string() : "";
    attempts.begin(attempt);
    is_noted_ = true;
  }
  const std::optional<batch::KeptRun>& kept() const noexcept { return kept_; }

 private:
  telemetry::RunFiles files_;
  const Request& request_;
  const ChosenStart& chosen_;
  std::optional<batch::KeptRun> kept_;
  std::function<std::optional<batch::KeptRun>()> keep_;
  bool is_noted_ = false;
};

/// A start that is refused changes nothing of the run but for its lines in attempts.jsonl, by which
/// it is known. There is no such file, and none is made, where no run has a directory yet.
void note_refusal(const Request& request, const UserError& error) {
  try {
    const fs::path log_dir = log_dir_of(request);
    std::error_code ignored;
    // Without a job it would as well be of a mistyped command beside another's run.
    if (!BatchJob::of_this_process().id.empty() && fs::is_directory(log_dir, ignored) &&
        !io::is_place_in_step(log_dir) &&
        telemetry::may_append_events(telemetry::RunFiles(log_dir).attempts())) {
      const batch::Attempt start = this_attempt();
      const batch::AttemptLog attempts = log_in(log_dir);
      batch::AttemptRecords records = attempts.read();
      const batch::Attempt* begun = records.find(start.start);
      const telemetry::ExitRecord left =
          telemetry::read_exit(telemetry::RunFiles(log_dir).exit_status());
      if (begun != nullptr && batch::is_since(left, *begun) &&
          left.is_of(BatchJob::of_this_process())) {
        return;  // that one has made steps: what is refused here is a command beside it
      }
      attempts.refuse({.start = start.start,
                       .unix_s = start.began_unix_s,
                       .code = error.code(),
                       .reason = error.what()});
      records = attempts.read();
      begun = records.find(start.start);
      if (begun != nullptr && begun->refused) {  // after it had taken over
        attempts.end(*begun,
                     {.unix_s = unix_time_s(), .code = error.code(), .reason = error.what()});
      }
    }
  } catch (const Error& second) {  // nobody knows where log.dir is, or it cannot be written
    log::warning(second.what());
  }
}

/// Whether this very start of the job lives on nodes that the job does not have: a controller that
/// was killed has forgotten that it runs, and has started it once more.
bool is_second_of_one_start(const fs::path& log_dir) {
  const auto holder = telemetry::run_lease_holder(log_dir);
  const auto me = io::LeaseHolder::this_process();
  return holder && !me.job.empty() && me.is_of_start(*holder) && !is_own_node(holder->host);
}

ExitCode begin_run(const Request& request) {
  const ChainRun run = run_of_chain(request, this_attempt());
  const std::string text = runfile::run_file_text(run.run_file);
  const runfile::EffectiveConfig effective =
      train::load_run(run.run_file, run.overrides, program::run_file_in_checkpoint);
  const runfile::RunConfig& config = effective.config;
  if (run.kept) {
    refuse_moved(*run.kept, config);
  }
  const fs::path log_dir = config.log.dir;
  if (batch::is_finished(log_dir, config.train.steps) &&
      train::look_before_answer(config, request.allowed_changes) &&
      speak_of_progress(request.other_words)) {
    program::print("finished\n");
    return ExitCode::finished;
  }
  telemetry::refuse_foreign_files(log_dir, {.config = false});
  const auto chosen = chosen_start(effective);
  if (!chosen) {
    program::print("queue\n");
    return ExitCode::finished;
  }
  if (is_rehearsal(request)) {  // it changes no file
    program::print_text(chosen->lines + kept_lines(request, run.kept));
    return ExitCode::finished;
  }
  BegunAttempt attempt(log_dir, request, *chosen, run.kept,
                       [&] { return keep(request, text, effective); });
  std::optional<HeldRun> held;
  try {
    held.emplace(config, [&] { attempt.note(); });
  } catch (const UserError& error) {
    if (!is_second_of_one_start(log_dir)) {
      throw;
    }
    log::warning(format_message(
        "{}; Slurm has started this job a second time: this one leaves all to the first",
        error.what()));
    program::print("superseded\n");
    return ExitCode::no_progress;
  }
  attempt.note();
  held->confirm();
  program::print_text(chosen->lines + kept_lines(request, attempt.kept()) +
                      file_lines(request, config));
  return ExitCode::finished;
}

}  // namespace

ExitCode begin(const Request& request) {
  try {
    return begin_run(request);
  } catch (const UserError& error) {
    if (error.code() != ExitCode::node_fault) {  // else it is not known of which run that is
      note_refusal(request, error);
    }
    throw;
  }
}

}  // namespace fourfold::job
