// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/batch/run_state.hpp>

#include <catch2/catch_test_macros.hpp>

using namespace fourfold;
using namespace fourfold::batch;
using telemetry::ExitStatus;
using telemetry::RunStatus;

namespace {

RunAttempt began(double unix_s, double until_s) {
  RunAttempt attempt;
  attempt.began_unix_s = unix_s;
  attempt.until_unix_s = until_s;
  return attempt;
}

RunAttempt ended(RunAttempt attempt, ExitCode code) {
  attempt.ended = true;
  attempt.code = code;
  attempt.reason = "noted";
  attempt.retry = telemetry::worth_retrying(code);
  return attempt;
}

RunStatus at_step(std::int64_t step, double updated_s) {
  RunStatus status;
  status.step = step;
  status.loss = 3.5;
  status.step_s = 1;
  status.updated_unix_s = updated_s;
  return status;
}

RunTraces running() {
  return {.running_since_unix_s = 1000, .status = at_step(7, 1200), .last = began(990, 1190)};
}

}  // namespace

TEST_CASE("an empty directory is a run that has not started", "[run_state]") {
  const RunVerdict verdict = state_of_run({}, 5000);
  CHECK(verdict.state == RunState::none);
  CHECK_FALSE(is_over(verdict.state));
  CHECK(name(verdict.state) == "none");
}

TEST_CASE("exit.json knows how a run ended", "[run_state]") {
  RunTraces traces = running();
  traces.running_since_unix_s.reset();
  traces.exit = ExitStatus{.code = ExitCode::stopped_saved, .reason = "saved"};
  CHECK(state_of_run(traces, 1201).state == RunState::stopped);
  CHECK(state_of_run(traces, 1201).retry);
  traces.exit->hold = true;
  CHECK_FALSE(state_of_run(traces, 1201).retry);
  traces.exit = ExitStatus{.code = ExitCode::hang, .reason = "hang: rank 3"};
  const RunVerdict hang = state_of_run(traces, 1201);
  CHECK(hang.state == RunState::failed);
  CHECK(hang.code == ExitCode::hang);
  CHECK(hang.reason == "hang: rank 3");
  traces.exit->code = ExitCode::finished;
  CHECK(state_of_run(traces, 1201).state == RunState::finished);
  CHECK(is_over(RunState::finished));
}

TEST_CASE("a run that speaks runs, one that does not may be dead", "[run_state]") {
  RunTraces traces = running();
  CHECK(state_of_run(traces, 1200).state == RunState::running);
  CHECK(state_of_run(traces, 1260).state == RunState::running);
  CHECK(state_of_run(traces, 1261).state == RunState::silent);
  CHECK(state_of_run(traces, 1100).state == RunState::running);  // its clock is ahead of ours
  traces.status->step_s = 20;
  CHECK(state_of_run(traces, 1400).state == RunState::running);
  CHECK(state_of_run(traces, 1401).state == RunState::silent);
  traces.longest_silence_s = 200;  // its evaluations and saves take as long
  CHECK(state_of_run(traces, 1800).state == RunState::running);
  CHECK(state_of_run(traces, 1801).state == RunState::silent);
  traces.longest_silence_s = 1e9;  // it was suspended
  CHECK(state_of_run(traces, 4801).state == RunState::silent);
}

TEST_CASE("before its first step a start has ten minutes", "[run_state]") {
  RunTraces traces{.last = began(1000, 1000)};  // the job has begun, fourfold not yet
  CHECK(state_of_run(traces, 1600).state == RunState::starting);
  CHECK(state_of_run(traces, 1601).state == RunState::silent);
  traces.running_since_unix_s = 1030;
  CHECK(state_of_run(traces, 1630).state == RunState::starting);
  traces.status = at_step(7, 900);  // of the job before
  CHECK(state_of_run(traces, 1200).state == RunState::starting);
  traces.status->ended = true;
  CHECK(state_of_run(traces, 1200).state == RunState::starting);
  traces.status = at_step(7, 1100);
  traces.status->loss.reset();
  CHECK(state_of_run(traces, 1200).state == RunState::starting);
  traces.status->loss = 3;
  CHECK(state_of_run(traces, 1130).state == RunState::running);
}

TEST_CASE("the batch script's word counts for a run that was killed without one", "[run_state]") {
  RunTraces traces = running();
  traces.last = ended(began(990, 1300), ExitCode::node_fault);
  const RunVerdict killed = state_of_run(traces, 9000);
  CHECK(killed.state == RunState::failed);
  CHECK(killed.code == ExitCode::node_fault);
  CHECK(killed.retry);
  traces.running_since_unix_s = 1400;  // but somebody has started it since
  CHECK(state_of_run(traces, 1500).state == RunState::starting);
  CHECK(state_of_run(traces, 9000).state == RunState::silent);
}

TEST_CASE("without exit.json the other files tell the end", "[run_state]") {
  CHECK(state_of_run({.finished_file = true}, 9000).state == RunState::finished);
  RunTraces traces{.status = at_step(7, 1200)};
  CHECK(state_of_run(traces, 1230).state == RunState::running);
  CHECK(state_of_run(traces, 9000).state == RunState::silent);
  traces.status->ended = true;
  traces.status->code = ExitCode::stopped_saved;
  CHECK(state_of_run(traces, 9000).state == RunState::stopped);
  traces.status->code.reset();
  CHECK(state_of_run(traces, 9000).state == RunState::failed);
  // FINISHED of an earlier target, and it runs again.
  RunTraces again = running();
  again.finished_file = true;
  CHECK(state_of_run(again, 1210).state == RunState::running);
}

TEST_CASE("a start that has told nothing yet is not the attempt before it", "[run_state]") {
  RunTraces traces = running();
  traces.last->trained = true;
  CHECK(state_of_run(traces, 1210).newest_goes_on);
  CHECK_FALSE(state_of_run(traces, 9000).newest_goes_on);  // silent
  traces.running_since_unix_s = 1205;                      // killed at 1200, started again
  const RunVerdict again = state_of_run(traces, 1210);
  CHECK(again.state == RunState::starting);
  CHECK_FALSE(again.newest_goes_on);
  traces.last = began(1203, 1203);  // by a job
  CHECK(state_of_run(traces, 1210).newest_goes_on);
}
