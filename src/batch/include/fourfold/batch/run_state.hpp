// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/error.hpp>
#include <fourfold/batch/run_attempts.hpp>
#include <fourfold/telemetry/exit_status.hpp>
#include <fourfold/telemetry/status_file.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fourfold::batch {

enum class RunState : std::uint8_t {
  none,      ///< nothing has started here
  starting,  ///< a job has begun; no step has been made yet
  running,
  silent,   ///< should be running, and says nothing: killed, or stuck
  stopped,  ///< saved and stopped
  failed,
  finished,
};

/// "none", "starting", "running", "silent", "stopped", "failed", "finished"
std::string_view name(RunState state) noexcept;

/// Whether its end is known: stopped, failed or finished.
bool is_over(RunState state) noexcept;

/// What a run has left in its directory.
struct RunTraces {
  /// exit.json, where it tells an end, and of no start before the newest
  std::optional<telemetry::ExitStatus> exit = {};
  /// when exit.json was written where it says "running"
  std::optional<double> running_since_unix_s = {};
  std::optional<telemetry::RunStatus> status = {};  ///< status.json
  bool finished_file = false;
  std::optional<RunAttempt> last = {};  ///< the newest attempt
  double longest_silence_s = 0;         ///< between two records of its trainer
};

struct RunVerdict {
  RunState state = RunState::none;
  std::optional<ExitCode> code = {};  ///< of stopped, failed, finished
  std::string reason = {};            ///< likewise
  bool retry = false;                 ///< whether starting it again makes sense without a person
  double last_word_unix_s = 0;        ///< its newest sign of life; 0: none
  bool newest_goes_on = false;        ///< the newest attempt is the one that starts or runs
};

/// What to make of the traces. In this order:
///
/// 1. exit.json tells an end: that.
/// 2. The batch script or the trainer noted the end of the newest attempt, and no sign of life came
///    later: that. So a run shows up that was killed without a word.
/// 3. FINISHED is there and no start goes on: finished. A start removes it at its first step.
/// 4. Otherwise it should be running. Silent is one that has said nothing for longer than the
///    largest of 60 s, 10 steps and 3 times its longest silence so far (but not more than an hour);
///    before the first step for longer than 10 minutes.
RunVerdict state_of_run(const RunTraces& traces, double now_unix_s);

}  // namespace fourfold::batch
