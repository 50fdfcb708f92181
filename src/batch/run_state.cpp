// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/enum_name.hpp>
#include <fourfold/batch/run_state.hpp>

#include <algorithm>
#include <array>

namespace fourfold::batch {
namespace {

RunState state_of(ExitCode code) {
  return code == ExitCode::finished        ? RunState::finished
         : code == ExitCode::stopped_saved ? RunState::stopped
                                           : RunState::failed;
}

double last_word_of(const RunTraces& traces) {
  double last_s = traces.running_since_unix_s.value_or(0);
  if (traces.status) {
    last_s = std::max(last_s, traces.status->updated_unix_s);
  }
  if (traces.last) {
    last_s = std::max(last_s, traces.last->until_unix_s);
  }
  return last_s;
}

/// The end that was noted of the newest attempt, unless something came later.
bool is_end_noted(const RunTraces& traces, double last_word_unix_s) {
  constexpr double same_moment_s = 1;  // files of one end are not written at once
  return traces.last && traces.last->ended &&
         last_word_unix_s <= traces.last->until_unix_s + same_moment_s;
}

/// Whether the start that should be running has: one that has just begun finds what others left.
bool has_made_a_step(const RunTraces& traces) {
  const double began_s = std::max(traces.running_since_unix_s.value_or(0),
                                  traces.last ? traces.last->began_unix_s : 0);
  const bool by_records = traces.last && traces.last->to_step > traces.last->from_step &&
                          traces.last->last_step_unix_s >= began_s;
  const bool by_status = traces.status && !traces.status->ended && traces.status->loss &&
                         traces.status->updated_unix_s >= began_s;
  return by_records || by_status;
}

/// Whether what should be running is the newest attempt known, and not one that has told nothing
/// yet.
bool is_newest_meant(const RunTraces& traces) {
  return traces.last && !traces.last->ended &&
         !(traces.last->trained &&
           traces.running_since_unix_s.value_or(0) > traces.last->until_unix_s);
}

double longest_quiet_s(const RunTraces& traces) {
  constexpr double before_first_step_s = 600;
  constexpr double shortest_s = 60;
  constexpr double longest_s = 3600;
  if (!has_made_a_step(traces)) {
    return before_first_step_s;
  }
  const double step_s = traces.status ? traces.status->step_s.value_or(0) : 0;
  return std::clamp(std::max(10 * step_s, 3 * traces.longest_silence_s), shortest_s, longest_s);
}

}  // namespace

std::string_view name(RunState state) noexcept {
  constexpr std::array<std::string_view, 7> names{"none",    "starting", "running", "silent",
                                                  "stopped", "failed",   "finished"};
  return name_in(names, state);
}

bool is_over(RunState state) noexcept {
  return state == RunState::stopped || state == RunState::failed || state == RunState::finished;
}

RunVerdict state_of_run(const RunTraces& traces, double now_unix_s) {
  RunVerdict verdict;
  verdict.last_word_unix_s = last_word_of(traces);
  const auto ended = [&](ExitCode code, const std::string& reason, bool retry) {
    verdict.state = state_of(code);
    verdict.code = code;
    verdict.reason = reason;
    verdict.retry = retry;
    return verdict;
  };
  if (traces.exit) {
    return ended(traces.exit->code, traces.exit->reason,
                 telemetry::worth_retrying(traces.exit->code) && !traces.exit->hold);
  }
  if (is_end_noted(traces, verdict.last_word_unix_s)) {
    return ended(traces.last->code, traces.last->reason, traces.last->retry);
  }
  const bool job_goes_on = traces.running_since_unix_s || (traces.last && !traces.last->ended);
  if (traces.finished_file && !job_goes_on) {
    return ended(ExitCode::finished, "finished", false);
  }
  if (!job_goes_on && traces.status && traces.status->ended) {
    const ExitCode code = traces.status->code.value_or(ExitCode::internal);
    return ended(code, traces.status->reason, telemetry::worth_retrying(code));
  }
  if (!job_goes_on && !traces.status) {
    return verdict;
  }
  const bool quiet = now_unix_s - verdict.last_word_unix_s > longest_quiet_s(traces);
  verdict.state = quiet                     ? RunState::silent
                  : has_made_a_step(traces) ? RunState::running
                                            : RunState::starting;
  verdict.newest_goes_on = !quiet && is_newest_meant(traces);
  return verdict;
}

}  // namespace fourfold::batch
