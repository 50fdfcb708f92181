// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/batch/chain.hpp>
#include <fourfold/batch/kept_run.hpp>
#include <fourfold/batch/run_view.hpp>
#include <fourfold/telemetry/log_dir.hpp>
#include <fourfold/telemetry/own_files.hpp>
#include <fourfold/telemetry/run_files.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <system_error>
#include <utility>

namespace fourfold::batch {

namespace {
namespace fs = std::filesystem;
using telemetry::StepTime;
using telemetry::TrainerStart;

void require_readable(const fs::path& log_dir) {
  if (::access(log_dir.c_str(), R_OK | X_OK) != 0 && errno != ENOENT) {
    throw UserError(
        ExitCode::config,
        format_message("cannot look into {} ({}); ask its owner for permission to read it",
                       log_dir.string(), std::generic_category().message(errno)));
  }
  std::error_code ignored;
  if (fs::exists(log_dir, ignored) && !fs::is_directory(log_dir, ignored)) {
    throw UserError(
        ExitCode::config,
        format_message("{} is no directory (a run is its log.dir, or a run file *.toml); "
                       "name one of these",
                       log_dir.string()));
  }
}

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

std::optional<double> written_unix_s(const fs::path& path) {
  struct stat found = {};
  if (::stat(path.c_str(), &found) != 0) {
    return std::nullopt;
  }
  return static_cast<double>(found.st_mtim.tv_sec) +
         1e-9 * static_cast<double>(found.st_mtim.tv_nsec);
}

/// An end that exit.json alone tells of: a hang's, say.
void note_end(const telemetry::ExitStatus& exit, std::optional<double> written_s,
              RunAttempt& attempt) {
  constexpr double longest_wait_s = 3600;  // later, somebody has copied the file
  attempt.ended = true;
  attempt.code = exit.code;
  attempt.reason = exit.reason;
  if (written_s && *written_s > attempt.until_unix_s &&
      *written_s - attempt.until_unix_s <= longest_wait_s) {
    attempt.until_unix_s = *written_s;
  }
}

/// What exit.json says of the run as it stands now: nothing where it is of a start before the
/// newest, and of the newest what was noted when its launcher had ended, too (a kill for memory,
/// say).
telemetry::ExitRecord exit_of_now(telemetry::ExitRecord left, std::optional<double> written_s,
                                  const AttemptRecords& noted, const RunAttempt* newest) {
  if (newest == nullptr) {
    return left;
  }
  const Attempt* const job = newest->start.id.empty() ? nullptr : noted.find(newest->start);
  if (job != nullptr && left.is_of(job->start)) {
    if (!is_since(left, *job)) {
      return {};
    }
    if (left.end && job->end) {
      left.end->code = job->end->code;
      left.end->reason = job->end->reason;
      left.end->hold = left.end->hold || !job->end->retry;
    }
    return left;
  }
  const bool is_of_earlier_job = job != nullptr && noted.find(left.by) != nullptr;
  // Of a start that no record tells of: a later one, or one before the newest.
  const bool is_later = written_s.value_or(0) >= newest->began_unix_s;
  const bool is_of_newest = job == nullptr && (newest->ended || newest->trained);
  return !is_of_earlier_job && (is_later || is_of_newest) ? left : telemetry::ExitRecord{};
}

/// The newest refusal, unless a start that was not refused began after it, as a job or, in the
/// same allocation, by itself.
std::optional<RefusedStart> last_refusal(const std::vector<RefusedStart>& refused,
                                         const RunAttempt* newest,
                                         const std::vector<TrainerStart>& starts) {
  if (refused.empty() || (newest != nullptr && newest->began_unix_s > refused.back().unix_s) ||
      (!starts.empty() && starts.back().began_unix_s > refused.back().unix_s)) {
    return std::nullopt;
  }
  return refused.back();
}

/// Step, loss and speed: by status.json, or by the newest record where that is newer.
void take_progress(const RunTraces& traces, const std::vector<TrainerStart>& starts,
                   RunView& view) {
  if (traces.status) {
    const telemetry::RunStatus& status = *traces.status;
    view.step = status.step;
    view.steps = status.steps;
    view.NewestStep::operator=(status);
    view.validation_loss = status.validation_loss;
    const bool of_job_before = (traces.last && status.updated_unix_s < traces.last->began_unix_s) ||
                               status.updated_unix_s < traces.running_since_unix_s.value_or(0);
    if (!of_job_before) {
      view.deadline_unix_s = status.deadline_unix_s;
    }
  }
  if (starts.empty()) {
    return;
  }
  const TrainerStart& newest = starts.back();
  if (!traces.status || newest.last_step.unix_s > traces.status->updated_unix_s) {
    view.step = newest.last_step.step;
    view.steps = newest.steps;
    view.NewestStep::operator=(newest);
  }
  if (newest.validation_loss) {
    view.validation_loss = newest.validation_loss;
    view.validation_step = newest.validation_step;
  }
}

void take_checkpoint(const RunTraces& traces, const std::vector<TrainerStart>& starts,
                     RunView& view) {
  if (traces.status) {
    view.checkpoint_step = traces.status->checkpoint_step;
    view.checkpoint = traces.status->checkpoint;
  }
  if (!view.checkpoint_step && !starts.empty()) {
    const TrainerStart& newest = starts.back();
    view.checkpoint_step = !newest.saved.empty()  ? std::optional(newest.saved.back().step)
                           : newest.from_step > 0 ? std::optional(newest.from_step)
                                                  : std::nullopt;
  }
  for (const TrainerStart& start : starts) {
    for (const StepTime& saved : start.saved) {
      if (saved.step == view.checkpoint_step) {
        view.checkpoint_unix_s = saved.unix_s;
      }
    }
  }
}

/// Training that was left when the run spoke last: as it said, or by the time of a step.
std::optional<double> left_then_s(const RunTraces& traces, const RunView& view) {
  if (traces.status && traces.status->remaining_s) {
    return traces.status->remaining_s;
  }
  return view.step_s ? std::optional(static_cast<double>(view.steps - view.step) * *view.step_s)
                     : std::nullopt;
}

void take_eta(const RunTraces& traces, RunView& view) {
  const std::optional<double> left_s = left_then_s(traces, view);
  if (view.verdict.state == RunState::finished || !left_s || view.step >= view.steps) {
    return;
  }
  const bool goes_on = view.verdict.state == RunState::running;
  const double spoke_s =
      traces.status ? traces.status->updated_unix_s : view.verdict.last_word_unix_s;
  if (goes_on) {
    view.remaining_s = std::max(*left_s - std::max(view.now_unix_s - spoke_s, 0.0), 0.0);
  } else {  // what is not saved is made again
    const std::int64_t again = view.step - view.checkpoint_step.value_or(0);
    view.remaining_s =
        *left_s + static_cast<double>(std::max<std::int64_t>(again, 0)) * view.step_s.value_or(0);
  }
  view.eta = eta(view);
}

/// Of a kept run that is damaged, or gone, nothing is known.
void take_run_file(const std::vector<Attempt>& attempts, RunView& view) {
  try {
    const auto kept = attempts.empty() || attempts.back().run_file.empty()
                          ? std::nullopt
                          : kept_run_of(attempts.back().run_file);
    if (kept) {
      view.run_file = kept->run_file();
      view.changed = kept->changed_origins();
    }
  } catch (const UserError&) {
    return;
  }
}

}  // namespace

bool was_next_refused(const RunView& view) {
  const RunAttempt* const last = newest_of_run(view.attempts);
  return last != nullptr && view.refused && !last->next.empty() &&
         view.refused->start.id == last->next;
}

RunReader::RunReader(fs::path log_dir)
    : log_dir_(std::move(log_dir)),
      // All of it: the first line says where the run began, and 5 million steps are a gigabyte.
      metrics_(telemetry::RunFiles(log_dir_).metrics(), std::uint64_t{1} << 42) {}

RunView RunReader::look(double now_unix_s) {
  require_readable(log_dir_);
  const telemetry::RunFiles files(log_dir_);
  RunTraces traces;
  // Before the metrics, which have the checkpoint that it names by then.
  traces.status = telemetry::read_status(files.status());
  metrics_.read_new([&] { history_ = {}; },
                    [&](std::string_view line) { history_.add_line(line); });
  const std::vector<TrainerStart>& starts = history_.starts();
  RunView view;
  view.log_dir = log_dir_;
  view.now_unix_s = now_unix_s;
  const AttemptRecords noted = AttemptLog(files.attempts()).read();
  view.attempts = attempts_of_run(noted.attempts, starts);
  const RunAttempt* newest = newest_of_run(view.attempts);
  view.refused = last_refusal(noted.refused, newest, starts);

  const fs::path exit_file = files.exit_status();
  telemetry::ExitRecord left = telemetry::read_exit(exit_file);
  const std::optional<double> written_s = left.unix_s ? left.unix_s : written_unix_s(exit_file);
  left = exit_of_now(std::move(left), written_s, noted, newest);
  traces.exit = left.end;
  if (left.says_running) {
    traces.running_since_unix_s = written_s;
  }
  traces.finished_file = view.finished_file = is_there(files.finished());
  if (traces.exit && newest != nullptr && !newest->ended) {
    note_end(*traces.exit, written_s, view.attempts[newest - view.attempts.data()]);
  }
  if (newest != nullptr) {
    traces.last = *newest;
  }
  traces.longest_silence_s = starts.empty() ? 0 : starts.back().longest_silence_s;
  view.verdict = state_of_run(traces, now_unix_s);
  view.stop_file = is_there(files.stop());
  view.save_file = is_there(files.save());
  view.hang_file = is_there(files.hang());
  take_progress(traces, starts, view);
  if (newest != nullptr && view.deadline_unix_s) {
    if (const auto moved = telemetry::moved_end_of(newest->start, log_dir_)) {
      view.deadline_unix_s = *moved;
    }
  }
  take_checkpoint(traces, starts, view);
  take_eta(traces, view);
  take_run_file(noted.attempts, view);
  view.node_hours = node_hours(view.attempts, view.verdict.newest_goes_on, now_unix_s);
  return view;
}

Eta eta(const RunView& view) {
  FOURFOLD_EXPECT(view.remaining_s);
  constexpr double most_jobs = 1e9;
  Eta result;
  result.finish_unix_s = view.now_unix_s + *view.remaining_s;
  if (!view.deadline_unix_s) {
    return result;
  }
  const double deadline_s = *view.deadline_unix_s;
  const bool goes_on = view.verdict.state == RunState::running;
  // A job past its end does nothing more, whatever its files say.
  const double job_left_s = goes_on ? std::max(deadline_s - view.now_unix_s, 0.0) : 0;
  const double left_after_s = std::max(*view.remaining_s - job_left_s, 0.0);
  if (goes_on) {
    result.in_time = left_after_s <= 0;
  }
  const RunAttempt* const newest = newest_of_run(view.attempts);
  if (newest != nullptr && deadline_s > newest->began_unix_s) {
    const double jobs = std::ceil(left_after_s / (deadline_s - newest->began_unix_s));
    result.more_jobs = std::min(jobs, most_jobs);
  }
  return result;
}

}  // namespace fourfold::batch
