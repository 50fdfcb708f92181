// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "scratch_folder.hpp"

#include <fourfold/telemetry/metrics.hpp>
#include <fourfold/telemetry/start_history.hpp>

#include <catch2/catch_test_macros.hpp>

#include <sstream>
#include <string>
#include <vector>

using namespace fourfold::telemetry;
using fourfold::ExitCode;
using fourfold::harness::read_bytes;
using fourfold::harness::ScratchFolder;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) {
    lines.push_back(line);
  }
  return lines;
}

StepRecord step_at(std::int64_t step, double loss) {
  StepRecord record;
  record.step = step;
  record.loss = loss;
  record.step_s = 0.5;
  record.tokens_per_s = 1000;
  record.mfu = 0.375;
  return record;
}

/// A run that was killed after step 3, went on from step 2 and was stopped.
std::string a_run(const ScratchFolder& folder) {
  MetricsFile file(folder / "metrics.jsonl");
  RunStart run;
  run.steps = 10;
  run.rank_hosts = {"a", "b", "a", "b"};
  file.start(run, 1000);
  file.step(step_at(1, 5), 1010);
  file.step(step_at(2, 4), 1012);
  file.checkpoint({2, "c/step-2", 10, 1, 1}, 1013);
  file.step(step_at(3, 3), 1043);
  run.first_step = 2;
  run.checkpoint = "c/step-2";
  run.rank_hosts = {"c"};
  file.start(run, 2000);
  file.step(step_at(3, 3), 2001);
  file.evaluation({3, 3.25, 100, 1}, 2002);
  file.step(step_at(4, 2.5), 2003);
  file.checkpoint({4, "c/step-4", 10, 1, 1}, 2004);
  file.end({4, ExitCode{75}, "saved and stopped: signal"}, 2005);
  return read_bytes(folder / "metrics.jsonl");
}

}  // namespace

TEST_CASE("starts are told apart, with what each has done", "[start_history]") {
  const ScratchFolder folder;
  StartHistory history;
  for (const std::string& line : lines_of(a_run(folder))) {
    history.add_line(line);
  }
  const std::vector<TrainerStart>& starts = history.starts();
  REQUIRE(starts.size() == 2);
  CHECK(starts[0].began_unix_s == 1000);
  CHECK(starts[0].from_step == 0);
  CHECK(starts[0].steps == 10);
  CHECK(starts[0].nodes == 2);
  CHECK(starts[0].last_step == StepTime{3, 1043});
  CHECK(starts[0].saved == std::vector{StepTime{2, 1013}});
  CHECK(starts[0].last_word_unix_s == 1043);
  CHECK(starts[0].longest_silence_s == 30);
  CHECK(starts[0].loss == 3);
  CHECK_FALSE(starts[0].end);
  CHECK(starts[1].from_step == 2);
  CHECK(starts[1].nodes == 1);
  CHECK(starts[1].checkpoint == "c/step-2");
  CHECK(starts[1].last_step == StepTime{4, 2003});
  CHECK(starts[1].step_s == 0.5);
  CHECK(starts[1].tokens_per_s == 1000);
  CHECK(starts[1].mfu == 0.375);
  CHECK(starts[1].validation_loss == 3.25);
  CHECK(starts[1].validation_step == 3);
  REQUIRE(starts[1].end);
  CHECK(starts[1].end->code == ExitCode::stopped_saved);
  CHECK(starts[1].end->unix_s == 2005);
}

TEST_CASE("a history that grows says at each line what it would say if that were the last",
          "[start_history]") {
  const ScratchFolder folder;
  const std::vector<std::string> lines = lines_of(a_run(folder));
  StartHistory growing;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    growing.add_line(lines[i]);
    StartHistory anew;
    for (std::size_t k = 0; k <= i; ++k) {
      anew.add_line(lines[k]);
    }
    REQUIRE(growing.starts().size() == anew.starts().size());
    CHECK(growing.starts().back().last_step == anew.starts().back().last_step);
    CHECK(growing.starts().back().longest_silence_s == anew.starts().back().longest_silence_s);
    CHECK(growing.starts().back().last_word_unix_s == anew.starts().back().last_word_unix_s);
    CHECK(growing.starts().back().validation_loss == anew.starts().back().validation_loss);
    CHECK(growing.starts().back().validation_step == anew.starts().back().validation_step);
  }
}

TEST_CASE("of many evaluations the newest of each start counts", "[start_history]") {
  StartHistory history;
  history.add_line(R"({"event":"start","time":1000,"from_step":0})");
  history.add_line(R"({"event":"eval","time":1010,"step":1,"loss":5})");
  history.add_line(R"({"event":"eval","time":1070,"step":2,"loss":4})");
  history.add_line(R"({"event":"resume","time":1080,"from_step":2})");
  history.add_line(R"({"event":"step","time":1090,"step":3,"loss":2})");
  REQUIRE(history.starts().size() == 2);
  CHECK(history.starts()[0].validation_loss == 4);
  CHECK(history.starts()[0].validation_step == 2);
  CHECK(history.starts()[0].longest_silence_s == 60);
  CHECK(history.starts()[0].last_word_unix_s == 1070);
  CHECK_FALSE(history.starts()[1].validation_loss);
  CHECK(history.starts()[1].loss == 2);
}

TEST_CASE("keys in another order or with blanks are the same record", "[start_history]") {
  StartHistory history;
  history.add_line(R"({"event":"start","time":1000,"from_step":0})");
  history.add_line(R"( { "time" : 1001.5 , "step":1, "loss": 2, "event" : "step" } )");
  CHECK(history.starts().back().last_step == StepTime{1, 1001.5});
  CHECK(history.starts().back().loss == 2);
  CHECK(history.starts().back().nodes == 1);
}

TEST_CASE("no line does harm", "[start_history]") {
  const std::vector<std::string> bad{
      "",
      "{",
      "[]",
      "null",
      std::string("\0\xff\xfe", 3),
      std::string(100'000, '['),
      R"({"event":"step","time":)",
      R"({"event":"step","time":}})",
      R"({"event":"step","time":-1,"step":9,"loss":1})",
      R"({"event":"step","time":1e300,"step":9,"loss":1})",
      R"({"event":"step","time":1e999,"step":9,"loss":1})",
      R"({"event":"step","time":nan,"step":9,"loss":1})",
      R"({"event":"step","time":1002,"step":-9,"loss":1})",
      R"({"event":"step","time":1002,"step":1e300,"loss":1})",
      R"({"event":"step","time":1002,"step":99999999999999999999,"loss":1})",
      R"({"event":"step","time":1002,"step":"9","loss":1})",
      R"({"event":"step","time":1002,"step":9,"lo)",
      R"({"event":"step","time":1002,rubbish})",
      R"({"event":"end","time":1002,"code":-1,"reason":""})",
      R"({"event":"end","time":1002,"code":4294967296,"reason":""})",
      R"({"event":"checkpoint","time":1002,"step":-3})",
      R"({"event":"start","from_step":7})",
      R"({"event":7,"time":1002})",
  };
  for (const std::string& line : bad) {
    INFO(line.substr(0, 80));
    StartHistory history;
    history.add_line(line);  // before there is a start
    CHECK(history.starts().empty());
    history.add_line(R"({"event":"start","time":1000,"from_step":0,"steps":10})");
    history.add_line(R"({"event":"step","time":1001,"step":1,"loss":2})");
    CHECK(history.starts().back().last_step == StepTime{1, 1001});
    history.add_line(line);
    REQUIRE(history.starts().size() == 1);
    CHECK(history.starts().back().last_step == StepTime{1, 1001});
    CHECK(history.starts().back().saved.empty());
    CHECK_FALSE(history.starts().back().end);
  }
}
