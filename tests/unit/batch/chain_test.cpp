// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/batch/chain.hpp>

#include <catch2/catch_test_macros.hpp>

#include <string>
#include <vector>

using namespace fourfold;
using namespace fourfold::batch;
using telemetry::ExitStatus;

namespace {

Attempt attempt(std::optional<std::int64_t> from_step, std::optional<AttemptEnd> end = {}) {
  return {.start = {.id = "7", .chain = "c"}, .from_step = from_step, .end = std::move(end)};
}

AttemptEnd ended(ExitCode code, bool retry) {
  return {.code = code, .reason = "because", .retry = retry};
}

/// The start that is asked for.
Attempt next(const std::string& chain, std::optional<std::int64_t> checkpoint_step) {
  return {.start = {.id = "next", .chain = chain}, .from_step = checkpoint_step};
}

const BatchJob own{.id = "7"};
const Attempt begun{.start = {.id = "7"}, .exit_unix_s = 1};  // after a start whose end lies there

/// An exit.json of `by`, written since then.
telemetry::ExitRecord told(ExitStatus status, const BatchJob& by = own) {
  return {.end = std::move(status), .by = by, .unix_s = 2};
}
telemetry::ExitRecord running(const BatchJob& by = own) {
  return {.says_running = true, .by = by, .unix_s = 2};
}
const AttemptEnd saved = ended(ExitCode::stopped_saved, true);

}  // namespace

TEST_CASE("a chain goes on as long as it makes progress", "[chain]") {
  std::vector<Attempt> attempts;
  std::optional<std::int64_t> checkpoint;
  for (int start = 0; start < 20; ++start) {
    CHECK_FALSE(refusal(attempts, next("c", checkpoint), {}));
    attempts.push_back(attempt(checkpoint, saved));
    checkpoint = checkpoint.value_or(0) + 10;
  }
}

TEST_CASE("starts that get nowhere end", "[chain]") {
  const std::vector<Attempt> none{attempt({}), attempt({}), attempt({})};
  const auto stuck = refusal(none, next("c", std::nullopt), {});
  REQUIRE(stuck);
  CHECK(stuck->code() == ExitCode::no_progress);
  CHECK(std::string(stuck->what()).find("no checkpoint at all") != std::string::npos);
  CHECK(std::string(stuck->what()).find("without a word") != std::string::npos);
  CHECK_FALSE(refusal(std::span(none).first(2), next("c", std::nullopt), {}));
  CHECK_FALSE(refusal(none, next("c", 10), {}));  // the last one came somewhere
  CHECK_FALSE(refusal(none, next("c", std::nullopt), {.most_without_progress = 4}));
  CHECK_FALSE(refusal(none, next("c", std::nullopt), {.most_without_progress = 0}));

  const std::vector<Attempt> later{attempt(10, saved), attempt(10), attempt(20, saved),
                                   attempt(20, saved)};
  CHECK_FALSE(refusal(later, next("c", 20), {}));
  CHECK(refusal(later, next("c", 20), {.most_without_progress = 2}));
}

TEST_CASE("an end that no other start mends holds the later jobs of the chain", "[chain]") {
  for (const ExitCode code : {ExitCode::cannot_write, ExitCode::config, ExitCode::data_corrupt,
                              ExitCode::internal, ExitCode::no_progress}) {
    const std::vector<Attempt> attempts{attempt(10, saved), attempt(20, ended(code, false))};
    const auto refused = refusal(attempts, next("c", 20), {});
    REQUIRE(refused);
    CHECK(refused->code() == code);
    CHECK(std::string(refused->what()).find("because") != std::string::npos);
    CHECK_FALSE(refusal(attempts, next("another", 20), {}));  // submitted anew, by a person
  }
  // Mended by hand, inside the allocation in which it was found.
  const std::vector<Attempt> wrong{attempt(10, ended(ExitCode::config, false))};
  Attempt mended = next("c", 10);
  CHECK(refusal(wrong, mended, {}));
  mended.start.id = wrong[0].start.id;
  CHECK_FALSE(refusal(wrong, mended, {}));
  mended.start.restarts = 1;
  CHECK(refusal(wrong, mended, {}));
  // Stopped by a STOP file, which each start looks for itself: a person has removed it.
  CHECK_FALSE(
      refusal(std::vector{attempt(10, ended(ExitCode::stopped_saved, false))}, next("c", 20), {}));
  // Finished, and wanted longer since.
  CHECK_FALSE(
      refusal(std::vector{attempt(10, ended(ExitCode::finished, false))}, next("c", 20), {}));
}

TEST_CASE("the starts of a chain are counted if that is wanted", "[chain]") {
  const std::vector<Attempt> attempts{attempt(10, saved), attempt(20, saved)};
  CHECK_FALSE(refusal(attempts, next("c", 30), {.most_starts = 3}));
  CHECK(refusal(attempts, next("c", 30), {.most_starts = 2})->code() == ExitCode::no_progress);
}

TEST_CASE("a start that was told to end is one though another of its ranks was killed", "[chain]") {
  constexpr int killed = 137;
  const std::string one = "srun: error: node0: task 0: Exited with exit code 75\n";
  const std::string other = "srun: error: node2: task 2: Killed\n";
  const AttemptEnd told = end_of({}, begun, own, killed, 9, {.words = one + other});
  CHECK((told.code == ExitCode::stopped_saved && told.retry));
  CHECK(end_of({}, begun, own, killed, 9, {.words = other}).code == ExitCode::node_fault);
  // Of one that has made steps the words decide nothing.
  CHECK(end_of(running(), begun, own, killed, 9, {.words = one + other}).code ==
        ExitCode::node_fault);
  CHECK(end_of({}, begun, own, killed, 9, {.words = "fourfold: " + one}).code ==
        ExitCode::node_fault);
}

TEST_CASE("a rank that ends by itself while others start is the one that is told", "[chain]") {
  const std::string others = "srun: error: node0: tasks 0-1: Exited with exit code 75\n";
  Attempt on_two = begun;
  on_two.nodes = 2;
  for (const char* const how : {"Killed", "Segmentation fault", "Exited with exit code 78",
                                "Exited with exit code 64", "Illegal instruction (core dumped)"}) {
    CAPTURE(how);
    const std::string first = std::string("srun: error: node1: tasks 2-3: ") + how + "\n";
    for (const int code : {75, 78, 137, 139}) {
      const AttemptEnd end = end_of({}, on_two, own, code, 9, {.words = first + others});
      CHECK((end.code == ExitCode::node_fault && end.retry));
      CHECK(end.bad_nodes == std::vector<std::string>{"node1"});
      CHECK(end.reason == std::string("a rank on node1 ended before the first step (") + how + ")");
    }
    // One that ended after those that were told to stop was ended with them.
    CHECK(end_of({}, on_two, own, 75, 9, {.words = others + first}).code ==
          ExitCode::stopped_saved);
  }
  // All were told.
  CHECK(end_of({}, on_two, own, 143, 9,
               {.words = "srun: error: node1: tasks 2-3: Terminated\n" + others})
            .code == ExitCode::stopped_saved);
  // All have refused.
  CHECK(end_of({}, on_two, own, 78, 9,
               {.words = "srun: error: node1: tasks 0-3: Exited with exit code 78\n"})
            .code == ExitCode::config);
}

TEST_CASE("launches inside a job are no starts of a chain, but may be stuck", "[chain]") {
  std::vector<Attempt> attempts{attempt(10, saved), attempt(20, saved)};
  attempts[1].start.launch = 1;
  CHECK_FALSE(refusal(attempts, next("c", 30), {.most_starts = 2}));
  Attempt inside = next("c", 30);
  inside.start.launch = 1;
  CHECK_FALSE(refusal(attempts, inside, {.most_starts = 1}));
  attempts.assign(3, attempt(30, ended(ExitCode::node_fault, true)));
  CHECK(refusal(attempts, inside, {})->code() == ExitCode::no_progress);
}

TEST_CASE("exit.json is believed over the launcher", "[chain]") {
  const ExitStatus status{
      .code = ExitCode::stopped_saved, .reason = "saved", .step = 7, .checkpoint = "c/step-7"};
  for (const int launcher_code : {0, 75, 137, 143}) {
    const AttemptEnd end = end_of(told(status), begun, own, launcher_code, 5);
    CHECK(end == AttemptEnd{5, ExitCode::stopped_saved, "saved", 7, true});
  }
  ExitStatus held = status;
  held.hold = true;
  CHECK_FALSE(end_of(told(held), begun, own, 75, 5).retry);
}

TEST_CASE("a rank that was alone on a node that does not answer has gone with it", "[chain]") {
  Attempt on_three = begun;
  on_three.nodes = 3;
  const ExitStatus left_us{.code = ExitCode::hang, .reason = "hang: rank 1 has ended", .step = 7};
  CHECK(lost_with_nodes(left_us, {}, 3) == left_us);
  ExitStatus lost = left_us;
  lost.code = ExitCode::node_fault;
  lost.reason += "; n2 does not answer Slurm";
  lost.bad_nodes = {"n2"};
  CHECK(lost_with_nodes(left_us, {"n2"}, 3) == lost);
  CHECK(lost_with_nodes(lost, {"n2"}, 3) == lost);  // asked again
  CHECK(lost_with_nodes(left_us, {"n1", "n2"}, 3).bad_nodes.size() == 2);
  // All of them: it is Slurm that does not answer.
  CHECK(lost_with_nodes(left_us, {"n1", "n2", "n3"}, 3) == left_us);
  ExitStatus named = left_us;
  named.bad_nodes = {"n1"};
  CHECK(lost_with_nodes(named, {"n2"}, 3) == named);
  const ExitStatus saved_it{.code = ExitCode::stopped_saved, .reason = "saved", .step = 7};
  CHECK(lost_with_nodes(saved_it, {"n2"}, 3) == saved_it);
}

TEST_CASE("nodes that do not answer are why a run was killed without a word", "[chain]") {
  Attempt on_three = begun;
  on_three.nodes = 3;
  const AttemptEnd end = end_of(running(), on_three, own, 137, 9, {.nodes_gone = {"n2"}});
  CHECK(end.code == ExitCode::node_fault);
  CHECK(end.retry);
  CHECK(end.reason == "its ranks have ended without a word; n2 does not answer Slurm");
  CHECK(end.bad_nodes == std::vector<std::string>{"n2"});
  CHECK(end_of(running(), on_three, own, 137, 9, {.nodes_gone = {"n1", "n2", "n3"}})
            .bad_nodes.empty());
}

TEST_CASE("a rank that left as Slurm took a node away has gone with that node", "[chain]") {
  const ExitStatus left_us{.code = ExitCode::hang, .reason = "hang: rank 0 has ended", .step = 7};
  AccountedStart failed{.state = "NODE_FAIL", .ended_unix_s = 50};
  const AttemptEnd end = end_not_noted(told(left_us), begun, 0, failed);
  CHECK(end.code == ExitCode::node_fault);
  CHECK(end.reason == left_us.reason + "; Slurm says NODE_FAIL: one of its nodes failed");
  failed.state = "CANCELLED";
  CHECK(end_not_noted(told(left_us), begun, 0, failed).code == ExitCode::hang);
  CHECK(end_not_noted(told(left_us), begun, 0, std::nullopt).code == ExitCode::hang);
}

TEST_CASE("a run that was preempted, or is at its time limit, says so", "[chain]") {
  const ExitStatus status{.code = ExitCode::stopped_saved,
                          .reason = "saved and stopped: SIGTERM (cancelled, or what it may be)",
                          .step = 7,
                          .checkpoint = "c/step-7"};
  ExitStatus expected = status;
  expected.reason = "saved and stopped: preempted";
  CHECK(stopped_by_slurm(status, "preempted") == expected);
  expected.reason = "saved and stopped: time limit";
  CHECK(stopped_by_slurm(status, "time limit") == expected);
  ExitStatus early = status;
  early.checkpoint = "";
  CHECK(stopped_by_slurm(early, "preempted").reason == "stopped before the first step: preempted");
  ExitStatus held{
      .code = ExitCode::stopped_saved, .reason = "saved and stopped: STOP", .hold = true};
  CHECK(stopped_by_slurm(held, "preempted") == held);
  const ExitStatus failed{.code = ExitCode::cannot_write, .reason = "disk: full"};
  CHECK(stopped_by_slurm(failed, "preempted") == failed);
}

TEST_CASE("a start after which the chain has begun another decides nothing", "[chain]") {
  const auto start = [](const char* chain, const char* job, std::int64_t restart) {
    return Attempt{.start = {.id = job, .restarts = restart, .chain = chain}};
  };
  const std::vector<Attempt> attempts{start("c", "1", 0), start("c", "2", 0), start("c", "2", 1),
                                      start("other", "3", 0)};
  CHECK(is_superseded(attempts, attempts[0]));
  CHECK(is_superseded(attempts, attempts[1]));
  CHECK_FALSE(is_superseded(attempts, attempts[2]));  // another's start does not count
  CHECK_FALSE(is_superseded(attempts, attempts[3]));
  std::vector<Attempt> inside{attempts[0], attempts[0]};  // one job, launched again
  inside[1].start.launch = 1;
  CHECK(is_superseded(inside, inside[0]));
  CHECK_FALSE(is_superseded(inside, inside[1]));
  CHECK(is_of_earlier_start(inside, inside[1], inside[0].start));
  CHECK_FALSE(is_of_earlier_start(inside, inside[0], inside[1].start));
  CHECK_FALSE(is_superseded({}, attempts[0]));  // somebody has removed the file
}

TEST_CASE("what an earlier start of the chain has left is told from another chain's", "[chain]") {
  const auto start = [](const char* chain, const char* job, std::int64_t restart) {
    return Attempt{.start = {.id = job, .restarts = restart, .chain = chain}};
  };
  const std::vector<Attempt> attempts{start("c", "1", 0), start("other", "2", 0),
                                      start("c", "3", 0), start("c", "3", 1), start("c", "4", 0)};
  const auto is_earlier = [&](const char* job, long restarts) {
    return is_of_earlier_start(attempts, attempts[3], {.id = job, .restarts = restarts});
  };
  CHECK(is_earlier("1", 0));
  CHECK(is_earlier("3", 0));
  CHECK_FALSE(is_earlier("1", 1));  // never began
  CHECK_FALSE(is_earlier("2", 0));
  CHECK_FALSE(is_earlier("3", 1));  // itself
  CHECK_FALSE(is_earlier("4", 0));  // later
  CHECK_FALSE(is_earlier("", 0));
}

TEST_CASE("without exit.json the launcher is all there is to go by", "[chain]") {
  const AttemptEnd killed = end_of(running(), begun, own, 137, 5);
  CHECK(killed.code == ExitCode::node_fault);
  CHECK(killed.retry);
  CHECK(killed.reason.find("137") != std::string::npos);
  const AttemptEnd full_disk = end_of(running(), begun, own, 73, 5);  // exit.json stayed as it was
  CHECK((full_disk.code == ExitCode::cannot_write && !full_disk.retry));
  CHECK(end_of(running(), begun, own, 0, 5).code ==
        ExitCode::node_fault);  // a rank left: not the end

  const AttemptEnd not_found = end_of({}, begun, own, 127, 5);
  CHECK(not_found.code == ExitCode::config);
  CHECK_FALSE(not_found.retry);
  CHECK(end_of({}, begun, own, 78, 5).code == ExitCode::config);
  CHECK_FALSE(end_of({}, begun, own, 64, 5).retry);
  const AttemptEnd taken_back = end_of({}, begun, own, 75, 5);  // of a run that was finished
  CHECK((taken_back.code == ExitCode::stopped_saved && taken_back.retry));
  for (const int signalled : {128 + 15, 128 + 10, 128 + 12}) {  // before the ranks could listen
    CHECK(end_of({}, begun, own, signalled, 5).code == ExitCode::stopped_saved);
    CHECK(end_of(running(), begun, own, signalled, 5).code == ExitCode::node_fault);
  }
  const AttemptEnd no_step = end_of({}, begun, own, 1, 5);  // srun could make no step
  CHECK(no_step.code == ExitCode::node_fault);
  CHECK(no_step.retry);
}

TEST_CASE("a start that another job has overtaken is not worth another one", "[chain]") {
  const BatchJob winner{.id = "31"};
  for (const telemetry::ExitRecord& record :
       {running(winner), told({.code = ExitCode::finished}, winner),
        told({.code = ExitCode::stopped_saved}, winner)}) {
    for (const int launcher_code : {0, 75, 85, 137}) {
      const AttemptEnd end = end_of(record, begun, own, launcher_code, 12.5);
      CHECK(end.code == ExitCode::config);
      CHECK_FALSE(end.retry);
      CHECK_FALSE(end.step);
      CHECK(end.reason.find("job 31") != std::string::npos);
    }
    // It has trained, until the other took the run.
    CHECK(end_of(record, begun, own, 93, 12.5).code == ExitCode::no_progress);
  }
  // Another job that was refused meanwhile says nothing of this one.
  const telemetry::ExitRecord refused = told({.code = ExitCode::config}, winner);
  CHECK(end_of(refused, begun, own, 137, 5) == end_of({}, begun, own, 137, 5));
  // The same job, put back into the queue and started once more.
  const telemetry::ExitRecord later = running({.id = own.id, .restarts = 1});
  CHECK_FALSE(end_of(later, begun, own, 137, 5).retry);
}

TEST_CASE("the end of a start before is never that of one that was refused", "[chain]") {
  const ExitStatus stopped{.code = ExitCode::stopped_saved, .reason = "saved", .step = 7};
  for (const BatchJob& by : {BatchJob{.id = "6"}, own, BatchJob{}}) {
    telemetry::ExitRecord before = told(stopped, by);
    before.unix_s = begun.exit_unix_s;  // it lay there when this one began
    for (const int launcher_code : {64, 65, 73, 78, 93}) {
      const AttemptEnd end = end_of(before, begun, own, launcher_code, 5);
      CHECK(static_cast<int>(end.code) == launcher_code);
      CHECK_FALSE(end.retry);
      CHECK_FALSE(end.step);
    }
    CHECK(end_of(before, begun, own, 137, 5) == end_of({}, begun, own, 137, 5));
    // What `fourfold train` noted counts, whatever the launcher makes of its code.
    Attempt refused = begun;
    refused.refused =
        RefusedStart{.start = {.id = "7"}, .code = ExitCode::config, .reason = "no such key"};
    for (const int launcher_code : {0, 1, 75, 78, 137}) {
      CHECK(end_of(before, refused, own, launcher_code, 5) ==
            AttemptEnd{.unix_s = 5, .code = ExitCode::config, .reason = "no such key"});
    }
  }
  // One of an earlier version does not say when it was written.
  CHECK(end_of({.end = stopped, .by = own}, begun, own, 78, 5).code == ExitCode::config);
}

TEST_CASE("a kill for memory ends a chain, whatever the other ranks tell of it", "[chain]") {
  const std::string words =
      "slurmstepd-node1: error: StepId=1.0 exceeded memory limit (216846336 > 134217728), being "
      "killed\nsrun: error: node1: task 1: Killed\n";
  const LauncherSaid said{words, "--mem=128M of the job"};
  telemetry::ExitStatus gone{.code = ExitCode::node_fault, .reason = "rank 1 is gone"};
  gone.bad_nodes = {"node1"};
  for (const telemetry::ExitRecord& left : {told(gone), running(), telemetry::ExitRecord{}}) {
    const AttemptEnd end = end_of(left, begun, own, 137, 5, said);
    CHECK(end.code == ExitCode::config);
    CHECK_FALSE(end.retry);
    CHECK(end.bad_nodes.empty());
    CHECK(end.reason ==
          "killed for memory on node1: its ranks there took 207 MiB, and may take 128 MiB "
          "(--mem=128M "
          "of the job); ask for more memory, or plan for less (`fourfold plan` says what a rank "
          "takes)");
  }
  // What came at its end, when it had saved, is none of its own.
  for (const ExitCode code : {ExitCode::finished, ExitCode::stopped_saved}) {
    telemetry::ExitStatus good{.code = code, .reason = "good"};
    CHECK(end_of(told(good), begun, own, 137, 5, said).code == code);
  }
}

TEST_CASE("a node without the program is left out, unless all are", "[chain]") {
  const std::string words =
      "srun: error: node2: task 2: Exited with exit code 2\n"
      "srun: error: node0: task 0: Killed\n";
  Attempt start = begun;
  start.nodes = 3;
  const AttemptEnd end = end_of({}, start, own, 137, 5, {words, ""});
  CHECK(end.code == ExitCode::node_fault);
  CHECK(end.retry);
  CHECK(end.bad_nodes == std::vector<std::string>{"node2"});
  CHECK(end.reason.find("could not be started on node2") != std::string::npos);
  start.nodes = 1;
  CHECK(end_of({}, start, own, 2, 5, {words, ""}).bad_nodes.empty());
  CHECK(end_of(running(), start, own, 137, 5, {words, ""}).bad_nodes.empty());
}

TEST_CASE("a job that was over before its script could begin is worth another one", "[chain]") {
  const AttemptEnd end = end_before_begin({.state = "NODE_FAIL", .ended_unix_s = 50});
  CHECK(end.unix_s == 50);
  CHECK(end.code == ExitCode::node_fault);
  CHECK(end.retry);
  CHECK(end.reason ==
        "the job was over before its batch script could begin (Slurm says NODE_FAIL: one of its "
        "nodes failed)");
}

TEST_CASE("an end that nobody has noted is known by what was left", "[chain]") {
  Attempt start = begun;
  start.began_unix_s = 100;
  telemetry::ExitStatus hung{.code = ExitCode::hang, .reason = "rank 1 hangs", .step = 7};
  const AttemptEnd told_end = end_not_noted(told(hung), start, 150);
  CHECK(told_end.code == ExitCode::hang);
  CHECK(told_end.step == 7);
  CHECK(told_end.unix_s == 2);  // of exit.json
  const AttemptEnd killed = end_not_noted(running(), start, 150);
  CHECK(killed.code == ExitCode::node_fault);
  CHECK(killed.retry);
  CHECK(killed.unix_s == 150);
  CHECK(killed.reason.find("first step") == std::string::npos);
  const AttemptEnd early = end_not_noted({}, start, 50);  // the status is of an earlier start
  CHECK(early.unix_s == 100);
  CHECK(early.reason.find("had not come to its first step") != std::string::npos);
  CHECK(end_not_noted(told(hung, {.id = "8"}), start, 0).code == ExitCode::node_fault);
  start.refused =
      RefusedStart{.start = {.id = "7"}, .unix_s = 120, .code = ExitCode::config, .reason = "no"};
  CHECK(end_not_noted({}, start, 150).code == ExitCode::config);
  CHECK(end_not_noted({}, start, 150).unix_s == 120);
}
