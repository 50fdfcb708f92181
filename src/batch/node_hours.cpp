// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/batch/node_hours.hpp>

#include <algorithm>
#include <limits>

namespace fourfold::batch {
namespace {

using telemetry::StepTime;

constexpr std::int64_t none_later = std::numeric_limits<std::int64_t>::max();

/// The step that is kept of an attempt if the lowest from which a later one started is `later`.
std::int64_t kept_step(const RunAttempt& attempt, std::int64_t later) {
  if (later != none_later) {
    return std::min(attempt.to_step, later);
  }
  const bool all_saved = attempt.ended && (attempt.code == ExitCode::finished ||
                                           attempt.code == ExitCode::stopped_saved);
  std::int64_t kept = all_saved ? attempt.to_step : attempt.from_step;
  for (const StepTime& saved : attempt.saved) {
    kept = std::max(kept, saved.step);
  }
  return kept;
}

/// When `step` was on disk, by the records of checkpoints and a straight line between them.
double time_of(std::int64_t step, const RunAttempt& attempt) {
  StepTime before{attempt.from_step, attempt.began_unix_s};
  StepTime behind{attempt.to_step, attempt.last_step_unix_s};
  for (const StepTime& saved : attempt.saved) {
    if (saved.step <= step && saved.step >= before.step) {
      before = saved;
    } else if (saved.step > step && saved.step < behind.step) {
      behind = saved;
    }
  }
  if (behind.step <= before.step || before.step >= step) {
    return before.unix_s;
  }
  const double share =
      static_cast<double>(step - before.step) / static_cast<double>(behind.step - before.step);
  return before.unix_s + share * (behind.unix_s - before.unix_s);
}

double lost_s(const RunAttempt& attempt, std::int64_t later) {
  const double lasted_s = attempt.until_unix_s - attempt.began_unix_s;
  const std::int64_t kept = kept_step(attempt, later);
  if (attempt.to_step <= attempt.from_step || kept <= attempt.from_step) {
    return lasted_s;
  }
  if (kept >= attempt.to_step) {
    return 0;
  }
  return std::clamp(attempt.until_unix_s - time_of(kept, attempt), 0.0, lasted_s);
}

}  // namespace

NodeHours node_hours(std::span<const RunAttempt> attempts, bool goes_on, double now_unix_s) {
  constexpr double hour_s = 3600;
  NodeHours sum;
  std::int64_t later = none_later;
  const RunAttempt* const newest = newest_of_run(attempts);
  for (std::size_t i = attempts.size(); i-- > 0;) {
    const RunAttempt& attempt = attempts[i];
    const double nodes = std::max(attempt.nodes, 1);
    const bool runs = goes_on && &attempt == newest;
    const double until_s = runs ? std::max(now_unix_s, attempt.began_unix_s) : attempt.until_unix_s;
    sum.used += nodes * std::max(until_s - attempt.began_unix_s, 0.0) / hour_s;
    if (!runs) {
      sum.lost += nodes * std::max(lost_s(attempt, later), 0.0) / hour_s;
    }
    if (attempt.to_step > attempt.from_step) {
      later = std::min(later, attempt.from_step);
    }
  }
  return sum;
}

}  // namespace fourfold::batch
