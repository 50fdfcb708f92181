// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/batch/accounting.hpp>
#include <fourfold/batch/chain.hpp>

#include <catch2/catch_test_macros.hpp>

#include <string>

namespace {

using namespace fourfold::batch;

Attempt attempt_of(const std::string& job, double began_unix_s) {
  Attempt attempt;
  attempt.start.id = job;
  attempt.began_unix_s = began_unix_s;
  return attempt;
}

// As Slurm 22.05 prints them of a job whose second task took what its cgroup may have.
const std::string killed =
    "1|RUNNING|1795887737|Unknown|||2|a|run\n"
    "1.batch|RUNNING|1795887737|Unknown|||2|a|run\n"
    "1.0|OUT_OF_MEMORY|1795887737|1795887740|213794816|node1|1|a|run\n";

}  // namespace

TEST_CASE("a kill for memory is read from the accounts of a step", "[accounting]") {
  const Attempt attempt = attempt_of("1", 1795887737.8);
  const auto start = accounted_start(killed, attempt);
  REQUIRE(start);
  CHECK(start->state == "RUNNING");
  CHECK_FALSE(start->ended_unix_s);
  CHECK(start->steps.size() == 2);
  CHECK_FALSE(start->is_under_way(attempt));  // the batch script goes on, and asks
  const auto kill = killed_for_memory(*start, attempt);
  REQUIRE(kill);
  CHECK(kill->nodes == std::vector<std::string>{"node1"});
  CHECK(kill->largest_task_bytes == 213794816);
  // A second start in the same allocation is not the one that was killed.
  CHECK_FALSE(killed_for_memory(*start, attempt_of("1", 1795887745)));
  // Other jobs whose numbers begin alike.
  CHECK_FALSE(accounted_start(killed, attempt_of("11", 1795887738)));
  CHECK_FALSE(accounted_start("11|RUNNING|1795887737|Unknown|||2|a|run\n", attempt));
}

TEST_CASE("a step whose end is not in the accounts yet is under way", "[accounting]") {
  const Attempt attempt = attempt_of("1", 1795887738);
  const auto start = accounted_start(
      "1|RUNNING|1795887737|Unknown|||2|a|run\n1.batch|RUNNING|1795887737|Unknown|||2|a|run\n"
      "1.0|RUNNING|1795887737|Unknown|||1|a|run\n",
      attempt);
  REQUIRE(start);
  CHECK(start->is_under_way(attempt));
  // Not that of a launch before, which a node has that is gone; nor the guard of restarts inside.
  CHECK_FALSE(start->is_under_way(attempt_of("1", 1795887745)));
  const auto guarded = accounted_start(
      "1|RUNNING|1795887737|Unknown|||2|run\n1.0|RUNNING|1795887737|Unknown|||1|fourfold-guard\n",
      attempt);
  REQUIRE(guarded);
  CHECK_FALSE(guarded->is_under_way(attempt));
}

TEST_CASE("of a job that was put back into the queue, the start counts", "[accounting]") {
  const std::string text =
      "7|NODE_FAIL|1000|1100|||2|a|run\n7.batch|CANCELLED|1000|1100|||2|a|run\n7.0|CANCELLED by "
      "0|1001|1100|||2|a|run\n"
      "7|PENDING|Unknown|Unknown|||2|a|run\n"
      "7|TIMEOUT|1200|1300|||2|a|run\n7.batch|CANCELLED|1200|1300|||2|a|run\n";
  const auto first = accounted_start(text, attempt_of("7", 1001.5));
  REQUIRE(first);
  CHECK(first->state == "NODE_FAIL");
  CHECK(first->ended_unix_s == 1100);
  CHECK(first->began_unix_s == 1000);
  CHECK(first->nodes == 2);
  CHECK(first->steps.size() == 2);
  const auto second = accounted_start(text, attempt_of("7", 1202));
  REQUIRE(second);
  CHECK(second->state == "TIMEOUT");
  CHECK(second->steps.size() == 1);
  CHECK_FALSE(accounted_start(text, attempt_of("7", 900)));
}

TEST_CASE("a job that has lost a node goes on in another line", "[accounting]") {
  // As Slurm 22.05 prints them of a job with --no-kill.
  const std::string text =
      "1|RESIZING|1000|1020|||2|a|run\n1.batch|RESIZING|1000|1020|||1|a|run\n1.0|COMPLETED|1000|"
      "1000|||2|a|run\n"
      "1|FAILED|1020|1030|||1|a|run\n1.1|OUT_OF_MEMORY|1025|1025|||1|a|run\n1|COMPLETED|2000|2010||"
      "|2|a|run\n";
  const auto start = accounted_start(text, attempt_of("1", 1001));
  REQUIRE(start);
  CHECK(start->state == "FAILED");
  CHECK(start->began_unix_s == 1000);
  CHECK(start->ended_unix_s == 1030);
  CHECK(start->nodes == 1);
  CHECK(start->steps.size() == 3);
  // A launch in what was left of it is one of the same start.
  CHECK(accounted_start(text, attempt_of("1", 1024)) == start);
}

TEST_CASE("what sacct does not print is no account", "[accounting]") {
  const Attempt attempt = attempt_of("1", 2e9);
  for (const char* const text :
       {"", "\n\n", "Slurm accounting storage is disabled\n", "1|RUNNING\n", "1|||||||\n",
        "1|RUNNING|soon|Unknown|||2|a|run\n", "1|RUNNING|-5|Unknown|||2|a|run\n", "1|A|1|2|3|4\n",
        "1|A|1|2|3|4|5\n", "1.0|A|1|2|3|4|5|6", "|||||||"}) {
    CAPTURE(text);
    CHECK_FALSE(accounted_start(text, attempt));
  }
  const auto odd =
      accounted_start("1|X|5|6|||2|a|run\n1.0|OUT_OF_MEMORY|1999999999||many|||", attempt);
  REQUIRE(odd);
  const auto kill = killed_for_memory(*odd, attempt);
  REQUIRE(kill);
  CHECK(kill->nodes.empty());
  CHECK_FALSE(kill->largest_task_bytes);
}

TEST_CASE("the accounts decide how a start ended where nothing else does", "[accounting]") {
  const Attempt attempt = attempt_of("1", 1795887737.8);
  const fourfold::BatchJob own{.id = "1"};
  const auto start = accounted_start(killed, attempt);
  const AttemptEnd end = end_of({}, attempt, own, 1, 5, {.accounted = start});
  CHECK(end.code == fourfold::ExitCode::config);
  CHECK_FALSE(end.retry);
  CHECK(end.reason.starts_with(
      "killed for memory on node1: its ranks there took all that they may, the largest 204 MiB ("));
  // The words name the node that slurmstepd was on.
  const std::string words = "slurmstepd-node2: error: Detected 1 oom_kill event in StepId=1.0.\n";
  CHECK(end_of({}, attempt, own, 1, 5, {.words = words, .accounted = start})
            .reason.starts_with("killed for memory on node2: its ranks there took all that they "
                                "may, the largest 204 MiB"));

  // Nobody knows why, and where no accounts answer, that is said.
  const fourfold::telemetry::ExitRecord running{.says_running = true, .by = own, .unix_s = 3};
  CHECK(end_of(running, attempt, own, 137, 5).reason ==
        "killed without a word (the launcher ended with code 137; whether for memory, no accounts "
        "say)");
  CHECK(end_of(running, attempt, own, 0, 5, {.accounted = AccountedStart{.state = "FAILED"}})
            .reason == "killed without a word (the launcher, too, or it lost its ranks)");

  AccountedStart failed{.state = "NODE_FAIL", .ended_unix_s = 1795887800};
  const AttemptEnd unseen = end_not_noted({}, attempt, 0, failed);
  CHECK(unseen.reason.find("Slurm says NODE_FAIL: one of its nodes failed") != std::string::npos);
  CHECK(unseen.unix_s == 1795887800);
  CHECK(unseen.retry);
  failed.state = "CANCELLED by 1000";
  CHECK(end_not_noted({}, attempt, 0, failed).reason.find("says CANCELLED by 1000)") !=
        std::string::npos);
  CHECK(end_not_noted({}, attempt, 0, start).code == fourfold::ExitCode::config);
}
