// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "scratch_folder.hpp"

#include <fourfold/batch/attempt_log.hpp>

#include <catch2/catch_test_macros.hpp>

#include <string>

using namespace fourfold;
using namespace fourfold::batch;
using fourfold::harness::read_bytes;
using fourfold::harness::ScratchFolder;
using fourfold::harness::write_bytes;

namespace {

const Attempt first{
    .start = {.id = "7", .restarts = 0, .chain = "c"}, .nodes = 4, .began_unix_s = 1000};
const Attempt second{.start = {.id = "7", .restarts = 1, .chain = "c"},
                     .nodes = 3,
                     .began_unix_s = 2000.5,
                     .from_step = 40};

}  // namespace

TEST_CASE("what is noted of starts and ends is read again", "[attempt_log]") {
  const ScratchFolder folder;
  const AttemptLog log(folder / "attempts.jsonl");
  CHECK(log.read().attempts.empty());
  const AttemptEnd end{.unix_s = 1500,
                       .code = ExitCode::stopped_saved,
                       .reason = "saved and stopped: \"deadline\"\n",
                       .step = 40,
                       .retry = true};
  log.begin(first);
  log.end(first, end);
  log.begin(second);
  Attempt ended = first;
  ended.end = end;
  CHECK(log.read().attempts == std::vector{ended, second});
}

TEST_CASE("what a start cost beside its own time is read again", "[attempt_log]") {
  const ScratchFolder folder;
  const AttemptLog log(folder / "attempts.jsonl");
  Attempt attempt = first;
  attempt.job_began_unix_s = 990;
  attempt.held_nodes = 5;
  attempt.idle_nodes = 1;
  attempt.idle_with_nodes = {3, 5};
  log.begin(attempt);
  log.begin(second);
  log.release(first, {.unix_s = 1500, .nodes = 4});
  log.release(first, {.unix_s = 1600, .nodes = 3});  // as a still later start was told
  attempt.released = {.unix_s = 1600, .nodes = 3};
  CHECK(log.read().attempts == std::vector{attempt, second});
  log.release({.start = {.id = "99"}}, {.unix_s = 1600});  // of a start that nobody has noted
  CHECK(log.read().attempts == std::vector{attempt, second});
}

TEST_CASE("a restart of a job that died does not give its end to the death", "[attempt_log]") {
  const ScratchFolder folder;
  const AttemptLog log(folder / "attempts.jsonl");
  log.begin(first);  // its node lost power
  log.begin(second);
  log.end(second, {.unix_s = 3000, .code = ExitCode::finished, .reason = "finished", .step = 80});
  const std::vector<Attempt> attempts = log.read().attempts;
  REQUIRE(attempts.size() == 2);
  CHECK_FALSE(attempts[0].end);
  REQUIRE(attempts[1].end);
  CHECK(attempts[1].end->step == 80);
}

TEST_CASE("lines that are no records of ours are passed over", "[attempt_log]") {
  const ScratchFolder folder;
  const AttemptLog log(folder / "attempts.jsonl");
  log.begin(first);
  const std::string good = read_bytes(folder / "attempts.jsonl");
  for (const std::string& bad :
       {std::string("{\"event\":\"begin\",\"ti"), std::string("# a remark"), std::string("[]"),
        std::string("{\"event\":\"begin\",\"time\":\"noon\"}"), std::string("7"),
        std::string("{\"event\":\"end\",\"job\":\"7\",\"restart\":0}"),
        std::string(R"({"event":"released","time":1,"job":"7","restart":0})"),
        std::string("\xff\xfe")}) {
    write_bytes(folder / "attempts.jsonl", good + bad);
    CHECK(log.read().attempts == std::vector{first});
    log.begin(second);  // after a line that was cut off
    CHECK(log.read().attempts == std::vector{first, second});
  }
}

TEST_CASE("the starts of a run are known however large the file has become", "[attempt_log]") {
  const ScratchFolder folder;
  const AttemptLog log(folder / "attempts.jsonl");
  log.begin(first);
  const std::string good = read_bytes(folder / "attempts.jsonl");
  const std::string remark = std::string((1 << 20) - 1, '#') + '\n';
  std::string large = good;
  for (int mib = 0; mib < 65; ++mib) {
    large += remark;
  }
  write_bytes(folder / "attempts.jsonl", large);
  log.begin(second);
  CHECK(log.read().attempts == std::vector{first, second});
}

TEST_CASE("numbers that cannot be do no harm", "[attempt_log]") {
  const ScratchFolder folder;
  const AttemptLog log(folder / "attempts.jsonl");
  const auto line = [](const std::string& number) {
    return R"({"event":"begin","time":1,"job":"7","restart":)" + number +
           R"(,"chain":"c","held_nodes":)" + number + R"(,"idle_nodes":)" + number +
           R"(,"idle_with_nodes":[)" + number + R"(],"nodes":)" + number + R"(,"from_step":)" +
           number + "}\n" + R"({"event":"end","time":2,"job":"7","restart":)" + number +
           R"(,"code":)" + number + R"(,"reason":"","step":)" + number + R"(,"retry":false})";
  };
  for (const char* const number : {"-1", "-1e300", "1e300", "99999999999999999999", "4294967296"}) {
    write_bytes(folder / "attempts.jsonl", line(number));
    const std::vector<Attempt> read = log.read().attempts;
    REQUIRE(read.size() == 1);
    CHECK(read[0].nodes >= 1);
    CHECK(read[0].idle_nodes >= 0);
    CHECK(read[0].held_nodes >= 0);
    CHECK(read[0].idle_with_nodes.at(0) >= 1);
    CHECK(read[0].start.restarts >= 0);
    CHECK(read[0].from_step.value_or(-1) >= 0);
    REQUIRE(read[0].end);
    CHECK(read[0].end->step.value_or(-1) >= 0);
    CHECK(read[0].end->code != ExitCode::finished);
  }
}

TEST_CASE("a log that cannot be written is said", "[attempt_log]") {
  const ScratchFolder folder;
  try {
    AttemptLog(folder / "no" / "attempts.jsonl").begin(first);
    FAIL("nothing was thrown");
  } catch (const UserError& error) {
    CHECK(error.code() == ExitCode::cannot_write);
    CHECK(std::string(error.what()).find("attempts.jsonl") != std::string::npos);
  }
}

TEST_CASE("a refused start is one of the attempt that has not ended", "[attempt_log]") {
  const ScratchFolder folder;
  const AttemptLog log(folder / "attempts.jsonl");
  const RefusedStart before{.start = {.id = "6"}, .unix_s = 900, .reason = "no such key"};
  const RefusedStart of_first{
      .start = {.id = "7"}, .unix_s = 1010, .code = ExitCode::cannot_write, .reason = "disk full"};
  const RefusedStart late{
      .start = {.id = "7"}, .unix_s = 1600, .reason = "typed by hand after its end"};
  log.refuse(before);  // by `fourfold job begin`: no attempt at all
  log.begin(first);
  log.refuse(of_first);
  log.end(first, {.unix_s = 1500, .code = ExitCode::cannot_write, .reason = "disk full"});
  log.refuse(late);
  log.begin(second);
  const AttemptRecords records = log.read();
  CHECK(records.refused == std::vector{before, of_first, late});
  REQUIRE(records.attempts.size() == 2);
  CHECK(records.attempts[0].refused == of_first);
  CHECK_FALSE(records.attempts[1].refused);
  CHECK(records.find({.id = "7", .restarts = 1}) == &records.attempts[1]);
  CHECK(records.find({.id = "6"}) == nullptr);
}

TEST_CASE("each launch inside a job has a begin and an end", "[attempt_log]") {
  const ScratchFolder folder;
  const AttemptLog log(folder / "attempts.jsonl");
  Attempt again = first;
  again.start.launch = 1;
  log.begin(first);
  log.end(first, {.unix_s = 1500, .code = ExitCode::node_fault, .reason = "gone", .retry = true});
  log.begin(again);
  log.refuse({.start = {.id = "7", .launch = 1}, .unix_s = 1600, .reason = "no such key"});
  const AttemptRecords records = log.read();
  REQUIRE(records.attempts.size() == 2);
  CHECK((records.attempts[0].end && !records.attempts[0].refused));
  CHECK((!records.attempts[1].end && records.attempts[1].refused));
  CHECK(records.attempts[1].start.launch == 1);
  CHECK(records.find(again.start) == &records.attempts[1]);
  CHECK(read_bytes(folder / "attempts.jsonl").find("\"launch\":0") == std::string::npos);
}

TEST_CASE("the exit.json that lay there at the begin is noted", "[attempt_log]") {
  const ScratchFolder folder;
  const AttemptLog log(folder / "attempts.jsonl");
  Attempt after_another = first;
  after_another.exit_unix_s = 987654321.123456789;
  log.begin(after_another);
  log.begin(second);
  CHECK(log.read().attempts == std::vector{after_another, second});
}
