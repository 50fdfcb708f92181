// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/batch/run_attempts.hpp>
#include <fourfold/telemetry/exit_status.hpp>

#include <algorithm>

namespace fourfold::batch {
namespace {

/// Whether a clock can show it.
bool is_time(double unix_s) {
  constexpr double year_5000 = 1e11;
  return unix_s >= 1 && unix_s <= year_5000;
}

RunAttempt of_job(const Attempt& job) {
  RunAttempt attempt;
  attempt.start = job.start;
  attempt.nodes = job.nodes;
  attempt.held_nodes = job.held_nodes;
  attempt.idle_nodes = job.idle_nodes;
  attempt.idle_with_nodes = job.idle_with_nodes;
  attempt.began_unix_s = attempt.until_unix_s = job.began_unix_s;
  attempt.job_began_unix_s = job.job_began_unix_s;
  attempt.released = job.released;
  attempt.from_step = attempt.to_step = job.from_step.value_or(0);
  attempt.refused = job.refused.has_value();
  attempt.next = job.end ? job.end->next : "";
  attempt.no_next = job.end ? job.end->no_next : job.no_next;
  if (job.end && is_time(job.end->unix_s)) {
    attempt.until_unix_s = std::max(job.end->unix_s, job.began_unix_s);
    attempt.to_step = std::max(job.end->step.value_or(0), attempt.from_step);
    attempt.last_step_unix_s = attempt.until_unix_s;
    attempt.ended = true;
    attempt.code = job.end->code;
    attempt.reason = job.end->reason;
    attempt.retry = job.end->retry;
  } else if (job.refused && is_time(job.refused->unix_s)) {
    attempt.until_unix_s = std::max(job.refused->unix_s, job.began_unix_s);
    attempt.ended = true;
    attempt.code = job.refused->code;
    attempt.reason = job.refused->reason;
  }
  return attempt;
}

void add_trainer(const telemetry::TrainerStart& trainer, RunAttempt& attempt) {
  attempt.trained = true;
  attempt.from_step = trainer.from_step;
  attempt.to_step = std::max(trainer.last_step.step, trainer.from_step);
  attempt.last_step_unix_s = trainer.last_step.unix_s;
  attempt.saved = trainer.saved;
  if (attempt.ended) {
    return;
  }
  attempt.until_unix_s = std::max(trainer.last_word_unix_s, attempt.began_unix_s);
  if (trainer.end) {
    attempt.ended = true;
    attempt.code = trainer.end->code;
    attempt.reason = trainer.end->reason;
    attempt.retry = telemetry::worth_retrying(trainer.end->code);
  }
}

RunAttempt of_trainer(const telemetry::TrainerStart& trainer) {
  RunAttempt attempt;
  attempt.nodes = trainer.nodes;
  attempt.began_unix_s = trainer.began_unix_s;
  add_trainer(trainer, attempt);
  return attempt;
}

/// The newest that began before `unix_s`; null: none.
RunAttempt* newest_before(double unix_s, std::vector<RunAttempt>& attempts) {
  RunAttempt* newest = nullptr;
  for (RunAttempt& attempt : attempts) {
    if (attempt.began_unix_s <= unix_s) {
      newest = &attempt;
    }
  }
  return newest;
}

bool by_begin(const RunAttempt& a, const RunAttempt& b) {
  return a.began_unix_s < b.began_unix_s;
}

}  // namespace

std::vector<RunAttempt> attempts_of_run(std::span<const Attempt> jobs,
                                        std::span<const telemetry::TrainerStart> trainers) {
  std::vector<RunAttempt> attempts;
  for (const Attempt& job : jobs) {
    if (is_time(job.began_unix_s)) {
      attempts.push_back(of_job(job));
    }
  }
  std::stable_sort(attempts.begin(), attempts.end(), by_begin);
  std::vector<RunAttempt> alone;
  for (const telemetry::TrainerStart& trainer : trainers) {
    RunAttempt* const job = newest_before(trainer.began_unix_s, attempts);
    const bool over = job == nullptr || (job->ended && job->until_unix_s < trainer.began_unix_s);
    if (over || job->trained) {
      alone.push_back(of_trainer(trainer));
    } else {
      add_trainer(trainer, *job);
    }
  }
  attempts.insert(attempts.end(), alone.begin(), alone.end());
  std::stable_sort(attempts.begin(), attempts.end(), by_begin);
  return attempts;
}

const RunAttempt* newest_of_run(std::span<const RunAttempt> attempts) {
  const auto found = std::find_if(attempts.rbegin(), attempts.rend(),
                                  [](const RunAttempt& one) { return !one.refused; });
  return found == attempts.rend() ? nullptr : &*found;
}

}  // namespace fourfold::batch
