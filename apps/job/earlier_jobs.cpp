// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0

#include "slurm_answers.hpp"

#include <fourfold/base/process_identity.hpp>
#include <fourfold/batch/chain.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace fourfold::job {
namespace {

std::optional<batch::AccountedStart> span_of(const std::string& job,
                                             const std::vector<batch::AccountedStart>& spans) {
  const auto found = std::ranges::find(spans, job, &batch::AccountedStart::job);
  return found == spans.end() ? std::nullopt : std::optional(*found);
}

/// The job of an attempt, or of a refused start.
template <class Started>
const std::string& id_of(const Started& one) {
  return one.start.id;
}

/// The controller's word on a job that is over.
std::optional<batch::AccountedStart> if_over(const std::optional<batch::AccountedStart>& span) {
  return span && span->ended_unix_s ? span : std::nullopt;
}

void release(const batch::AttemptLog& log, const batch::Attempt& attempt,
             const std::optional<batch::AccountedStart>& job) {
  if (!job || !job->ended_unix_s || *job->ended_unix_s < attempt.began_unix_s) {
    return;
  }
  const batch::JobRelease release{.unix_s = *job->ended_unix_s, .nodes = job->nodes};
  if (attempt.released != release) {
    log.release(attempt, release);
  }
}

/// Asking Slurm takes seconds, in which a start's own script may note its end.
bool has_end_by_now(const batch::AttemptLog& log, const batch::Attempt& attempt) {
  const batch::AttemptRecords records = log.read();
  const batch::Attempt* const same = records.find(attempt.start);
  return same != nullptr && same->end;
}

/// @param span  of its job; nothing where the controller speaks of another start of it
/// @param is_of_chain  of the start that asks: it is over, else only once Slurm says so
void note_last(const batch::AttemptLog& log, const batch::Attempt& last,
               const telemetry::ExitRecord& left, double last_word_unix_s,
               const std::optional<batch::AccountedStart>& span, bool is_of_chain = true) {
  auto accounted = if_over(span);
  if (!last.end || !accounted) {  // they know of its steps, too
    if (auto more = ask_accounting(last)) {
      if (accounted && !more->ended_unix_s) {  // and learn of an end later than the controller
        more->state = accounted->state;
        more->ended_unix_s = accounted->ended_unix_s;
        more->nodes = accounted->nodes;
      }
      accounted = std::move(more);
    }
  }
  if (!is_of_chain && (!accounted || !accounted->ended_unix_s)) {
    return;
  }
  if (!last.end && !has_end_by_now(log, last)) {
    log.end(last, batch::end_not_noted(left, last, last_word_unix_s, accounted));
  }
  release(log, last, accounted);
}

/// The job that submitted this one, which has not come as far as to begin a start.
void note_not_begun(const batch::AttemptLog& log, const batch::Attempt& next,
                    const std::optional<batch::AccountedStart>& span) {
  batch::Attempt job{
      .start = {.id = BatchJob::of_this_process().previous, .chain = next.start.chain},
      .began_unix_s = next.began_unix_s,
      .from_step = next.from_step,
      .exit_unix_s = next.exit_unix_s};
  auto accounted = if_over(span);
  if (!accounted) {
    accounted = ask_accounting(job);
  }
  if (!accounted || !accounted->ended_unix_s || *accounted->ended_unix_s > next.began_unix_s) {
    return;
  }
  job.nodes = accounted->nodes;
  job.began_unix_s = accounted->began_unix_s;
  job.job_began_unix_s = accounted->began_unix_s;
  log.begin(job);
  log.end(job, batch::end_before_begin(*accounted));
}

}  // namespace

void note_earlier_jobs(const batch::AttemptLog& log, batch::Attempt& next,
                       const telemetry::ExitRecord& left, double last_word_unix_s) {
  const batch::AttemptRecords records = log.read();
  const batch::Attempt* const last = batch::newest_of_chain(records.attempts, next.start.chain);
  const std::string previous = BatchJob::of_this_process().previous;
  const bool was_refused =
      std::ranges::count(records.refused, previous, id_of<batch::RefusedStart>) > 0;
  const batch::Attempt* other = records.attempts.empty() ? nullptr : &records.attempts.back();
  if (other != nullptr &&
      (other->end || other->start.chain == next.start.chain || other->start.id == next.start.id)) {
    other = nullptr;
  }
  const auto spans = ask_job_spans({next.start.id, last != nullptr ? last->start.id : "",
                                    other != nullptr ? other->start.id : "", previous});
  if (other != nullptr) {  // the run was submitted anew since, and its script noted no end
    note_last(log, *other, left, last_word_unix_s, span_of(other->start.id, spans), false);
  }
  const auto own = span_of(next.start.id, spans);
  if (next.start.launch == 0 && own && own->began_unix_s <= next.began_unix_s) {
    next.job_began_unix_s = own->began_unix_s;
  }
  if (last != nullptr) {
    const bool is_own = last->start.id == next.start.id;
    // The end of a launch in this start of the job takes no nodes back.
    if (!is_own || last->start.restarts != next.start.restarts || !last->end) {
      note_last(log, *last, left, last_word_unix_s,
                is_own ? std::nullopt : span_of(last->start.id, spans));
    }
  }
  if (previous.empty() || previous == next.start.id ||
      (last != nullptr && previous == last->start.id)) {
    return;
  }
  const auto begun = std::ranges::find(records.attempts.rbegin(), records.attempts.rend(), previous,
                                       id_of<batch::Attempt>);
  if (begun != records.attempts.rend()) {
    // A controller that was killed may have had it again since, for some time.
    release(log, *begun, if_over(span_of(previous, spans)));
  } else if (!was_refused) {
    note_not_begun(log, next, span_of(previous, spans));
  }
}

}  // namespace fourfold::job
