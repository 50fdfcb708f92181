// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/batch/run_attempts.hpp>

#include <catch2/catch_test_macros.hpp>

#include <vector>

using namespace fourfold;
using namespace fourfold::batch;
using telemetry::TrainerStart;

namespace {

Attempt job(std::string name, double began_s, std::optional<std::int64_t> from_step = {}) {
  return {.start = {.id = std::move(name)},
          .nodes = 4,
          .began_unix_s = began_s,
          .from_step = from_step};
}

Attempt ended(Attempt attempt, double unix_s, ExitCode code, std::optional<std::int64_t> step) {
  attempt.end = AttemptEnd{.unix_s = unix_s, .code = code, .reason = "by job", .step = step};
  return attempt;
}

TrainerStart trainer(double began_s, std::int64_t from_step, std::int64_t to_step, double until_s) {
  TrainerStart start;
  start.began_unix_s = began_s;
  start.from_step = from_step;
  start.last_step = {to_step, until_s};
  start.last_word_unix_s = until_s;
  return start;
}

}  // namespace

TEST_CASE("a job and its trainer are one attempt", "[run_attempts]") {
  const std::vector jobs{ended(job("7", 1000), 2000, ExitCode::stopped_saved, 50),
                         job("8", 3000, 50)};
  TrainerStart first = trainer(1010, 0, 50, 1990);
  first.saved = {{40, 1800}, {50, 1995}};
  const std::vector trainers{first, trainer(3010, 50, 70, 3500)};
  const std::vector<RunAttempt> attempts = attempts_of_run(jobs, trainers);
  REQUIRE(attempts.size() == 2);
  CHECK(attempts[0].start.id == "7");
  CHECK(attempts[0].nodes == 4);
  CHECK(attempts[0].trained);
  CHECK(attempts[0].began_unix_s == 1000);
  CHECK(attempts[0].until_unix_s == 2000);
  CHECK(attempts[0].to_step == 50);
  CHECK(attempts[0].saved.size() == 2);
  CHECK(attempts[0].reason == "by job");
  CHECK(attempts[1].from_step == 50);
  CHECK(attempts[1].to_step == 70);
  CHECK_FALSE(attempts[1].ended);
  CHECK(attempts[1].until_unix_s == 3500);
}

TEST_CASE("a start without a job is one too", "[run_attempts]") {
  TrainerStart by_hand = trainer(2500, 50, 60, 2600);
  by_hand.nodes = 2;
  by_hand.end = {2610, ExitCode::hang, "by trainer"};
  by_hand.last_word_unix_s = 2610;
  const std::vector jobs{ended(job("7", 1000), 2000, ExitCode::stopped_saved, 50),
                         job("8", 3000, 50)};
  const std::vector trainers{trainer(1010, 0, 50, 1990), by_hand, trainer(3010, 60, 70, 3500)};
  const std::vector<RunAttempt> attempts = attempts_of_run(jobs, trainers);
  REQUIRE(attempts.size() == 3);
  CHECK(attempts[1].start.id.empty());
  CHECK(attempts[1].nodes == 2);
  CHECK(attempts[1].code == ExitCode::hang);
  CHECK(attempts[1].retry);
  CHECK(attempts[1].until_unix_s == 2610);
  CHECK(attempts[2].start.id == "8");
  CHECK(attempts[2].from_step == 60);  // not what the job thought
  // A job has one trainer: the next is somebody else's.
  CHECK(attempts_of_run(std::vector{job("7", 1000)},
                        std::vector{trainer(1010, 0, 5, 1100), trainer(1200, 0, 5, 1300)})
            .size() == 2);
  CHECK(attempts_of_run({}, std::vector{trainer(1010, 0, 5, 1100)}).size() == 1);
  CHECK(attempts_of_run({}, {}).empty());
}

TEST_CASE("a job whose trainer left nothing has what it noted itself", "[run_attempts]") {
  const std::vector jobs{ended(job("7", 1000, 20), 2000, ExitCode::config, std::nullopt),
                         ended(job("8", 3000, 20), 2900, ExitCode::stopped_saved, 50)};
  const std::vector<RunAttempt> attempts = attempts_of_run(jobs, {});
  REQUIRE(attempts.size() == 2);
  CHECK_FALSE(attempts[0].trained);
  CHECK(attempts[0].from_step == 20);
  CHECK(attempts[0].to_step == 20);
  CHECK(attempts[1].to_step == 50);
  CHECK(attempts[1].until_unix_s == 3000);  // clocks that disagree give no negative time
}
