// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/batch/node_hours.hpp>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <vector>

using namespace fourfold;
using namespace fourfold::batch;
using Catch::Approx;

namespace {

constexpr double hour_s = 3600;

/// An attempt whose steps took a minute each from its begin on, on two nodes. Times in hours.
RunAttempt attempt(double began_h, double until_h, std::int64_t from_step, std::int64_t to_step,
                   const std::vector<std::int64_t>& saved = {}) {
  constexpr double step_s = 60;
  RunAttempt one;
  one.nodes = 2;
  one.began_unix_s = began_h * hour_s;
  one.until_unix_s = until_h * hour_s;
  one.from_step = from_step;
  one.to_step = to_step;
  const auto time_of = [&](std::int64_t step) {
    return one.began_unix_s + step_s * static_cast<double>(step - from_step);
  };
  one.last_step_unix_s = time_of(to_step);
  for (const std::int64_t step : saved) {
    one.saved.push_back({step, time_of(step)});
  }
  return one;
}

RunAttempt ended(RunAttempt one, ExitCode code) {
  one.ended = true;
  one.code = code;
  return one;
}

void check(const std::vector<RunAttempt>& attempts, double used, double lost) {
  const NodeHours sum = node_hours(attempts, false, 0);
  CHECK(sum.used == Approx(used));
  CHECK(sum.lost == Approx(lost).margin(1e-9));
}

}  // namespace

TEST_CASE("what is saved is not lost", "[node_hours]") {
  check({}, 0, 0);
  check({ended(attempt(10, 11, 0, 59, {30, 59}), ExitCode::finished)}, 2, 0);
  check({ended(attempt(10, 11, 0, 59, {30, 59}), ExitCode::stopped_saved),
         ended(attempt(20, 20.5, 59, 89, {89}), ExitCode::finished)},
        3, 0);
  // The code alone says that it was saved, where metrics.jsonl is missing.
  check({ended(attempt(10, 11, 0, 59), ExitCode::stopped_saved)}, 2, 0);
}

TEST_CASE("what came after the last saved step of an attempt that was killed is lost",
          "[node_hours]") {
  // Steps take a minute: the save of step 45 is done after 0.75 h.
  check({attempt(10, 11, 0, 60, {15, 30, 45})}, 2, 2 * 0.25);
  check({ended(attempt(10, 11, 0, 60, {15, 30, 45}), ExitCode::node_fault)}, 2, 2 * 0.25);
  check({attempt(10, 11, 0, 60, {15, 30, 45}), attempt(12, 13, 45, 105, {105})}, 4, 2 * 0.25);
  check({attempt(10, 11, 0, 60)}, 2, 2);  // nothing was saved
  // A hang: it stood still for half an hour after the step that was saved.
  check({ended(attempt(10, 11, 0, 31, {30}), ExitCode::hang)}, 2, 2 * 0.5);
  // Nor is it less where that was its last one.
  check({ended(attempt(10, 11, 0, 30, {30}), ExitCode::hang)}, 2, 2 * 0.5);
  check({ended(attempt(10, 11, 0, 30, {30}), ExitCode::node_fault), attempt(12, 13, 30, 90, {90})},
        4, 2 * 0.5);
  check({ended(attempt(10, 11, 0, 30), ExitCode::hang), attempt(12, 13, 30, 90, {90})}, 4, 0);
}

TEST_CASE("what a later start computes again is lost", "[node_hours]") {
  // The newest checkpoints turned out damaged: 30 steps of the first attempt, all of the second.
  check({ended(attempt(10, 11, 0, 60, {15, 30, 45, 60}), ExitCode::stopped_saved),
         ended(attempt(12, 13, 60, 120, {90, 120}), ExitCode::stopped_saved),
         ended(attempt(14, 15, 30, 90, {90}), ExitCode::stopped_saved)},
        6, 2 * 0.5 + 2 * 1);
  // Begun anew.
  check({ended(attempt(10, 11, 0, 60, {60}), ExitCode::stopped_saved),
         ended(attempt(12, 13, 0, 60, {60}), ExitCode::finished)},
        4, 2);
}

TEST_CASE("a start that made no step is lost, and undoes nothing", "[node_hours]") {
  check({ended(attempt(10, 11, 0, 60, {60}), ExitCode::stopped_saved),
         ended(attempt(11, 11.5, 60, 60), ExitCode::node_fault),
         ended(attempt(11.5, 12, 0, 0), ExitCode::config)},
        2 + 1 + 1, 1 + 1);
}

TEST_CASE("a step without a record of its checkpoint lies on a line", "[node_hours]") {
  // Steps of one minute, gone on with from step 40, which the records do not have.
  check({attempt(10, 11, 0, 60, {30}), ended(attempt(11, 12, 40, 100), ExitCode::finished)}, 4,
        2 * 20.0 / 60);
  check({attempt(10, 11, 0, 60), ended(attempt(11, 12, 40, 100), ExitCode::finished)}, 4,
        2 * 20.0 / 60);
}

TEST_CASE("of an attempt that goes on nothing is lost yet", "[node_hours]") {
  const std::vector attempts{attempt(10, 11, 0, 60, {30}), attempt(12, 12.1, 30, 36)};
  const NodeHours sum = node_hours(attempts, true, 12.5 * hour_s);
  CHECK(sum.used == Approx(2 + 2 * 0.5));
  CHECK(sum.lost == Approx(2 * 0.5));
}

TEST_CASE("a job costs from the begin that Slurm tells to its end", "[node_hours]") {
  RunAttempt job = ended(attempt(10, 11, 0, 60, {60}), ExitCode::stopped_saved);
  job.start.id = "7";
  job.job_began_unix_s = 9.75 * hour_s;
  job.released = {.unix_s = 11.5 * hour_s, .nodes = 2};
  check({job}, 2 * 1.75, 0);
  // What it had not saved is lost, with all that came after; of a start that made no step, all.
  RunAttempt killed = job;
  killed.saved = {{30, 10.5 * hour_s}};
  killed.code = ExitCode::node_fault;
  check({killed}, 2 * 1.75, 2 * 1.0);
  killed.to_step = 0;
  check({killed}, 2 * 1.75, 2 * 1.75);
  // Its last sign of life came later than Slurm took the nodes back.
  job.released->unix_s = 10.5 * hour_s;
  check({job}, 2 * 0.75, 0);
  // One of its nodes had failed before its end, and was no longer its own.
  job.released = {.unix_s = 11.5 * hour_s, .nodes = 1};
  check({job}, 2 * 1.25 + 0.5, 0);
  killed.released = job.released;
  check({killed}, 2 * 1.25 + 0.5, 2 * 1.25 + 0.5);
  // It goes on.
  CHECK(node_hours(std::vector{job}, true, 12 * hour_s).used == Approx(2 * 2.25));
}

TEST_CASE("the launches of a job follow each other without a gap", "[node_hours]") {
  RunAttempt first = ended(attempt(10, 11, 0, 60, {60}), ExitCode::node_fault);
  RunAttempt second = ended(attempt(11.5, 12, 60, 90, {90}), ExitCode::finished);
  first.start.id = second.start.id = "7";
  second.start.launch = 1;
  second.nodes = 1;
  second.released = {.unix_s = 12.25 * hour_s, .nodes = 1};
  check({first, second}, 2 * 1 + 1.25, 0);
  second.held_nodes = 2;  // it left out one that had not failed to Slurm
  second.released->nodes = 2;
  check({first, second}, 2 * 1 + 2 * 1.25, 0);
  second.held_nodes = 0;
  second.start.restarts = 1;  // in the queue meanwhile
  check({first, second}, 2 * 1 + 0.75, 0);
  // A controller that was killed had forgotten that the job had begun.
  second.start.restarts = second.start.launch = 0;
  second.job_began_unix_s = 11.25 * hour_s;
  check({first, second}, 2 * 1 + 1, 0);
}

TEST_CASE("times and numbers that cannot be give no negative sums", "[node_hours]") {
  RunAttempt odd = attempt(10, 9, 60, 0, {500, 3});
  odd.nodes = -5;
  const NodeHours sum = node_hours(std::vector{odd}, false, 0);
  CHECK(sum.used == 0);
  CHECK(sum.lost == 0);
  odd = attempt(10, 11, 0, 60, {30});
  odd.saved.front().unix_s = 1e10;  // a clock in the future
  CHECK(node_hours(std::vector{odd}, false, 0).lost == 0);
  odd.saved.front().unix_s = 1;
  CHECK(node_hours(std::vector{odd}, false, 0).lost == Approx(2));
  for (const double time : {-1e300, 1e300, std::nan("")}) {
    odd.job_began_unix_s = time;
    odd.released = {.unix_s = -time, .nodes = -7};
    CHECK(node_hours(std::vector{odd}, false, 0).used == Approx(2));
  }
}
