// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/amount.hpp>
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
  StepTime after{attempt.to_step, attempt.last_step_unix_s};
  for (const StepTime& saved : attempt.saved) {
    if (saved.step <= step && saved.step >= before.step) {
      before = saved;
    } else if (saved.step > step && saved.step < after.step) {
      after = saved;
    }
  }
  if (after.step <= before.step || before.step >= step) {
    return before.unix_s;
  }
  const double share = ratio(step - before.step, after.step - before.step);
  return before.unix_s + share * (after.unix_s - before.unix_s);
}

/// From when to when an attempt had its nodes, and those that its job had longer, or less long.
struct Held {
  double nodes = 1;
  double since_s = 0;
  double until_s = 0;
  double nodes_after = 1;
  double after_s = 0;
  double used_s() const { return nodes * std::max(until_s - since_s, 0.0) + nodes_after * after_s; }
};

Held held(const RunAttempt& attempt, const RunAttempt* before) {
  constexpr double longest_s = 7 * 24 * 3600;  // beyond any start: a damaged file's
  const int most = std::max({attempt.nodes, attempt.held_nodes, 1});
  const double nodes = most;
  Held held{.nodes = nodes,
            .since_s = attempt.began_unix_s,
            .until_s = attempt.until_unix_s,
            .nodes_after = nodes};
  const bool follows = attempt.start.launch > 0 && before != nullptr &&
                       before->start.id == attempt.start.id &&
                       before->start.restarts == attempt.start.restarts;
  const double since_s =
      follows ? before->until_unix_s : attempt.job_began_unix_s.value_or(attempt.began_unix_s);
  if (since_s < held.since_s && held.since_s - since_s < longest_s) {
    held.since_s = since_s;
  }
  if (attempt.released && attempt.released->unix_s >= held.since_s &&
      attempt.released->unix_s - held.until_s < longest_s) {
    held.nodes_after = std::clamp(attempt.released->nodes, 1, most);
    held.after_s = std::max(attempt.released->unix_s - held.until_s, 0.0);
    held.until_s = std::min(attempt.released->unix_s, held.until_s);
  }
  return held;
}

double lost_s(const RunAttempt& attempt, const Held& held, std::int64_t later) {
  const std::int64_t kept = kept_step(attempt, later);
  if (attempt.to_step <= attempt.from_step || kept <= attempt.from_step) {
    return held.used_s();
  }
  // One that hangs, or whose node fails, right after a save has stood still since.
  const bool stood_still =
      attempt.ended && (attempt.code == ExitCode::hang || attempt.code == ExitCode::node_fault) &&
      std::ranges::count(attempt.saved, kept, &telemetry::StepTime::step) > 0;
  if (kept >= attempt.to_step && !stood_still) {
    return 0;
  }
  Held lost = held;
  lost.since_s = std::max(time_of(kept, attempt), held.since_s);
  return lost.used_s();
}

}  // namespace

NodeHours node_hours(std::span<const RunAttempt> attempts, bool goes_on, double now_unix_s) {
  constexpr double hour_s = 3600;
  NodeHours sum;
  std::int64_t later = none_later;
  const RunAttempt* const newest = newest_of_run(attempts);
  for (std::size_t i = attempts.size(); i-- > 0;) {
    const RunAttempt& attempt = attempts[i];
    Held had = held(attempt, i > 0 ? &attempts[i - 1] : nullptr);
    if (goes_on && &attempt == newest) {
      had.until_s = std::max(now_unix_s, had.since_s);
      had.after_s = 0;
    } else {
      sum.lost += lost_s(attempt, had, later) / hour_s;
    }
    sum.used += had.used_s() / hour_s;
    if (attempt.to_step > attempt.from_step) {
      later = std::min(later, attempt.from_step);
    }
  }
  return sum;
}

}  // namespace fourfold::batch
