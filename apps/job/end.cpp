// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "chain_run.hpp"
#include "job.hpp"
#include "slurm_answers.hpp"

#include <fourfold/base/clock.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/process_identity.hpp>
#include <fourfold/batch/chain.hpp>
#include <fourfold/io/atomic_file.hpp>
#include <fourfold/io/directory_lease.hpp>
#include <fourfold/io/step_place.hpp>
#include <fourfold/program/print.hpp>
#include <fourfold/telemetry/exit_status.hpp>
#include <fourfold/telemetry/log_dir.hpp>
#include <fourfold/telemetry/own_files.hpp>
#include <fourfold/telemetry/run_files.hpp>
#include <fourfold/train/load_run.hpp>
#include <fourfold/train/stop_request.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>

namespace fourfold::job {
namespace {
namespace fs = std::filesystem;

/// Why an exit.json could not have been written; nothing when it could. A run whose disk is full is
/// killed without a word, but no other start mends that.
std::optional<UserError> no_room_in(const fs::path& exit_file) {
  try {
    io::AtomicFile file(exit_file);
    file.write(std::string(4096, ' '));
    file.sync();
    return std::nullopt;
  } catch (const UserError& error) {
    return error;
  }
}

/// Whether the chain has gone on without this start: exit.json is another's then.
bool has_been_replaced(const fs::path& log_dir, const batch::AttemptRecords& records,
                       const batch::Attempt& attempt) {
  const auto holder = telemetry::run_lease_holder(log_dir);
  return batch::is_superseded(records.attempts, attempt) ||
         (holder && holder->replaces(io::LeaseHolder::this_process()));
}

ExitCode end_replaced(const batch::AttemptLog& attempts, const batch::AttemptRecords& records,
                      const batch::Attempt& attempt) {
  const batch::Attempt* const begun = records.find(attempt.start);
  if (begun == nullptr || !begun->end) {  // the later one may have noted it
    attempts.end(attempt, {.unix_s = unix_time_s(),
                           .code = ExitCode::no_progress,
                           .reason = "a later start of the chain has taken over",
                           .retry = true});  // that one may not have noted itself yet
  }
  program::print("superseded\n");
  return ExitCode::no_progress;
}

/// What a run has told of its end, and could not know all about.
telemetry::ExitStatus as_slurm_knows(const Request& request, telemetry::ExitStatus told,
                                     int nodes) {
  if (request.preempted || request.time_limit) {
    told = batch::stopped_by_slurm(
        told, request.preempted ? "preempted" : train::name(train::StopReason::deadline));
  }
  return batch::lost_with_nodes(told, request.nodes_gone, nodes);
}

/// Whether the launch had nothing to do: the run is finished, and its steps were not raised since.
bool has_nothing_left(const Request& request, const fs::path& log_dir,
                      const batch::Attempt& attempt) {
  if (request.launcher_code != 0 || !batch::is_finished(log_dir, 0)) {
    return false;
  }
  try {
    const ChainRun run = run_of_chain(request, attempt);
    return batch::is_finished(log_dir,
                              train::load_run(run.run_file, run.overrides).config.train.steps);
  } catch (const UserError&) {  // who reads it says what is wrong with it
    return false;
  }
}

/// What the run, its launcher and Slurm say of a launch that has ended. A run that was preempted,
/// stopped at a time limit it did not know, or lost a node says so in exit.json from now on.
/// @param has_told  set to whether the run itself does
batch::AttemptEnd end_of_launch(const Request& request, const fs::path& exit_file,
                                const batch::AttemptRecords& records, const batch::Attempt& attempt,
                                bool& has_told) {
  const BatchJob own = BatchJob::of_this_process();
  telemetry::ExitRecord left = telemetry::read_exit(exit_file);
  if (batch::is_of_earlier_start(records.attempts, attempt, left.by)) {
    left = {};  // it ended while this one took over
  }
  has_told = batch::is_since(left, attempt) && left.is_of(own) && left.end;
  if (has_told) {
    const telemetry::ExitStatus told = *left.end;
    left.end = as_slurm_knows(request, told, attempt.nodes);
    if (left.end != told) {
      telemetry::write_exit_status(exit_file, *left.end);
    }
  }
  const bool may_be_killed =
      request.launcher_code != 0 && !(has_told && batch::has_ended_well(left));
  return batch::end_of(
      left, attempt, own, request.launcher_code, unix_time_s(),
      {.words = request.launcher_words,
       .memory_limit = request.memory_limit,
       .accounted = may_be_killed ? ask_accounting(attempt) : std::nullopt,
       .nodes_gone = request.nodes_gone,
       .is_finished = has_nothing_left(request, exit_file.parent_path(), attempt)});
}

/// Of a start of which nothing was launched, too.
batch::AttemptEnd how_it_ended(const Request& request, const fs::path& exit_file,
                               const batch::AttemptRecords& records,
                               const batch::Attempt& attempt) {
  bool has_told = false;
  batch::AttemptEnd end =
      request.stopped_by.empty()
          ? end_of_launch(request, exit_file, records, attempt, has_told)
          : batch::AttemptEnd{.unix_s = unix_time_s(),
                              .code = ExitCode::stopped_saved,
                              .reason = telemetry::stop_reason("", request.stopped_by),
                              .retry = true};
  if (const auto error = end.retry && !has_told ? no_room_in(exit_file) : std::nullopt) {
    end.code = error->code();
    end.reason = error->what();
    end.retry = false;
  }
  end.next = end.retry ? request.next : "";  // else its script cancels that one
  end.no_next = request.no_next;
  return end;
}

/// For its script, and for its log.
void tell(const batch::AttemptEnd& end) {
  std::string on_one_line = end.reason;  // it comes from a file, and is not to look like more
  std::ranges::replace(on_one_line, '\n', ' ');
  log::info(format_message("ended with code {}: {}", end.code, on_one_line));
  if (end.retry) {
    program::print("again {}\n", fmt::join(end.bad_nodes, ","));
  } else {
    program::print("{}\n", end.code == ExitCode::finished ? "finished" : "stop");
  }
}

/// It is not done again, whatever has ended it.
ExitCode end_rehearsal(const Request& request) {
  constexpr int first_of_shells = 126;  // cannot be run, is not there, was killed
  const bool went_well = request.launcher_code == 0 && request.stopped_by.empty();
  program::print("{}\n", went_well ? "finished" : "stop");
  if (!request.stopped_by.empty()) {
    return ExitCode::stopped_saved;
  }
  if (request.launcher_code < first_of_shells) {
    return static_cast<ExitCode>(request.launcher_code);
  }
  log::info(
      format_message("the dry run has said nothing of its end (the launcher ended with code "
                     "{}: killed, or not there)",
                     request.launcher_code));
  return ExitCode::config;  // no code with which sites put jobs back into the queue
}

}  // namespace

bool is_rehearsal(const Request& request) {
  return std::ranges::count(request.other_words, "--dry-run") > 0;
}

ExitCode end(const Request& request) {
  if (is_rehearsal(request)) {
    return end_rehearsal(request);
  }
  const fs::path log_dir = log_dir_of(request);
  io::refuse_place_in_step(log_dir);
  telemetry::refuse_foreign_attempts(log_dir);
  const batch::AttemptLog attempts = log_in(log_dir);
  batch::Attempt attempt = this_attempt();
  const batch::AttemptRecords records = attempts.read();
  if (has_been_replaced(log_dir, records, attempt)) {
    return end_replaced(attempts, records, attempt);
  }
  if (const batch::Attempt* const begun = records.find(attempt.start)) {
    attempt = *begun;
  }
  const batch::AttemptEnd end =
      how_it_ended(request, telemetry::RunFiles(log_dir).exit_status(), records, attempt);
  attempts.end(attempt, end);
  forget_refused(records.attempts, attempt);
  tell(end);
  return end.code;
}

}  // namespace fourfold::job
