// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "file_size_limit.hpp"
#include "replayed_records.hpp"
#include "scratch_folder.hpp"
#include "step_fields.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/telemetry/metrics.hpp>
#include <fourfold/telemetry/status_file.hpp>

#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <sstream>

using namespace fourfold::telemetry;
using namespace fourfold::runfile;
using fourfold::harness::read_bytes;
using fourfold::harness::ScratchFolder;
using fourfold::harness::write_bytes;
using nlohmann::json;

namespace {

std::vector<json> lines_of(const std::filesystem::path& file) {
  std::vector<json> lines;
  std::istringstream in(read_bytes(file));
  for (std::string line; std::getline(in, line);) {
    lines.push_back(json::parse(line));
  }
  return lines;
}

}  // namespace

TEST_CASE("a sink that fails on the way is left out, the others go on", "[metrics]") {
  struct Full : MetricSink {
    void step(const StepRecord& /*record*/, double /*unix_time_s*/) override {
      throw fourfold::UserError(fourfold::ExitCode::cannot_write, "disk full");
    }
    void end(const RunEnd& /*record*/, double /*unix_time_s*/) override { FAIL("left in"); }
  };
  struct Counting : MetricSink {
    explicit Counting(int& count) : count_(count) {}
    void step(const StepRecord& /*record*/, double /*unix_time_s*/) override { ++count_; }
    int& count_;
  };
  int count = 0;
  MetricsLog log;
  log.add(std::make_unique<Full>());
  log.add(std::make_unique<Counting>(count));
  RunStart run;
  run.steps = 3;
  log.start(run);
  for (std::int64_t step = 1; step <= 3; ++step) {
    log.step({.step = step});
  }
  log.end({.step = 3, .code = fourfold::ExitCode{0}, .reason = "finished"});
  CHECK(count == 3);
}

TEST_CASE("metrics.jsonl has one object per record with stable keys", "[metrics]") {
  const ScratchFolder dir;
  const auto file = dir / "metrics.jsonl";
  double now_s = 1000;
  MetricsLog log(1, [&] { return now_s++; });
  log.add(std::make_unique<MetricsFile>(file));
  log.start(start_at(0, 10));
  log.step(step_at(1, 4.5));
  CHECK(lines_of(file).size() == 2);  // visible to others at once
  log.evaluation({1, 4.25, 640, 0.5});
  log.checkpoint({1, "ckpt/step-1", 12345, 0.125, 2.5});
  log.memory({1, 2, {{"weights", 300}, {"gradients", 20}}, 345});
  log.end({1, fourfold::ExitCode{0}, "finished"});

  const auto lines = lines_of(file);
  REQUIRE(lines.size() == 6);
  CHECK(lines[0]["event"] == "start");
  CHECK(lines[0]["from_step"] == 0);
  CHECK(lines[0]["rank_hosts"] == json{"a", "b"});
  CHECK(lines[1] ==
        json::parse(R"({"event":"step","time":1001.0,"step":1,"loss":4.5,"grad_norm":1.5,"lr":3e-4,
                                    "tokens":64,"step_s":0.25,"tokens_per_s":256.0,"data_s":0.01})"));
  CHECK(lines[2] ==
        json::parse(
            R"({"event":"eval","time":1002.0,"step":1,"loss":4.25,"tokens":640,"eval_s":0.5})"));
  CHECK(lines[3] ==
        json::parse(
            R"({"event":"checkpoint","time":1003.0,"step":1,"path":"ckpt/step-1","bytes":12345,
                                    "save_s":0.125,"committed_s":2.5})"));
  CHECK(lines[4] == json::parse(R"({"event":"memory","time":1004.0,"step":1,"rank":2,
                                    "planned_bytes":{"weights":300,"gradients":20},"taken_bytes":345})"));
  CHECK(lines[5] ==
        json::parse(R"({"event":"end","time":1005.0,"step":1,"code":0,"reason":"finished"})"));
  // The order of keys is part of what "stable" means for people who cut columns out.
  CHECK(read_bytes(file).find("{\"event\":\"step\",\"time\":1001.0,\"step\":1,\"loss\":4.5") !=
        std::string::npos);
}

TEST_CASE("every number of a step has its key in metrics.jsonl, and its curve in TensorBoard",
          "[metrics]") {
  const ScratchFolder dir;
  StepRecord record;
  double next = 1;
  for (const StepField& field : step_fields) {
    std::visit([&]<class Number>(
                   Number StepRecord::*member) { record.*member = static_cast<Number>(next++); },
               field.number);
  }
  {
    MetricsFile file(dir / "metrics.jsonl");
    file.step(record, 1);
    TensorBoardFile board(dir / "tensorboard");
    board.start(start_at(0, 10), 1);
    board.step(record, 1);
  }
  const std::string line = read_bytes(dir / "metrics.jsonl");
  const std::string events =
      read_bytes(std::filesystem::directory_iterator(dir / "tensorboard")->path());
  const StepRecord again = replayed(dir / "metrics.jsonl").steps.at(0).record;
  std::size_t place = 0;
  std::set<std::string_view> tags;
  for (const StepField& field : step_fields) {
    INFO(field.key);
    CHECK(StepField::value(field.number, again) == StepField::value(field.number, record));
    const std::size_t found = line.find("\"" + std::string(field.key) + "\":", place + 1);
    REQUIRE(found != std::string::npos);  // in the order of the fields
    place = found;
    CHECK(events.find(field.tag) != std::string::npos);
    CHECK((field.tag.empty() || tags.insert(field.tag).second));
  }
  CHECK(tags.size() == 10);
}

TEST_CASE("a loss scale is in metrics.jsonl and TensorBoard where there is one", "[metrics]") {
  const ScratchFolder dir;
  StepRecord overflowed = step_at(2, 4.25);
  overflowed.grad_norm = std::numeric_limits<double>::infinity();
  overflowed.loss_scale = 32768;
  overflowed.skipped_steps = 5;
  {
    MetricsFile file(dir / "metrics.jsonl");
    file.step(overflowed, 1);
    TensorBoardFile board(dir / "tensorboard");
    board.start(start_at(0, 10), 1);
    board.step(overflowed, 1);
  }
  const auto lines = lines_of(dir / "metrics.jsonl");
  CHECK(lines[0]["loss_scale"] == 32768);
  CHECK(lines[0]["skipped_steps"] == 5);
  CHECK(lines[0]["grad_norm"].is_null());
  const Records history = replayed(dir / "metrics.jsonl");
  CHECK(history.steps[0].record.loss_scale == 32768);
  CHECK(history.steps[0].record.skipped_steps == 5);
  for (const auto& entry : std::filesystem::directory_iterator(dir / "tensorboard")) {
    const std::string events = read_bytes(entry.path());
    CHECK(events.find("train/loss_scale") != std::string::npos);
    CHECK(events.find("train/skipped_steps") != std::string::npos);
  }
}

TEST_CASE("MFU is the run's FLOP over the peak of all ranks, in every sink that has speed",
          "[metrics]") {
  const ScratchFolder dir;
  {
    double now_s = 1000;
    MetricsLog log(2, [&] { return now_s += 10; });
    log.add(std::make_unique<MetricsFile>(dir / "metrics.jsonl"));
    log.add(std::make_unique<StatusFile>(dir / "status.json"));
    log.add(std::make_unique<TensorBoardFile>(dir / "tensorboard"));
    RunStart run = start_at(0, 3);
    run.flop_per_token = 8e8;
    run.peak_flop_per_s = 1e12;
    log.start(run);
    log.step({.step = 1, .step_s = 0.5, .tokens_per_s = 1000});
    log.step({.step = 2, .step_s = 0.25, .tokens_per_s = 2000});
  }
  const Records history = replayed(dir / "metrics.jsonl");
  CHECK(history.starts[0].record.flop_per_token == 8e8);
  CHECK(history.starts[0].record.peak_flop_per_s == 1e12);
  // 1000 tokens/s of 0.8 GFLOP are 0.8 TFLOP/s of two ranks' 2 TFLOP/s.
  CHECK(std::abs(history.steps[0].record.mfu - 0.4) < 1e-12);
  CHECK(std::abs(history.steps[1].record.mfu - 0.8) < 1e-12);
  CHECK(std::abs(read_status(dir / "status.json")->mfu.value() - 0.8) < 1e-12);
  for (const auto& entry : std::filesystem::directory_iterator(dir / "tensorboard")) {
    CHECK(read_bytes(entry.path()).find("speed/mfu") != std::string::npos);
  }
}

TEST_CASE("memory of a device is in the records after which it was looked at", "[metrics]") {
  const ScratchFolder dir;
  {
    MetricsLog log(3);
    log.add(std::make_unique<MetricsFile>(dir / "metrics.jsonl"));
    log.start(start_at(0, 9));
    for (std::int64_t step = 1; step <= 9; ++step) {
      StepRecord record = step_at(step, 1);
      if (step == 2 || step == 4 || step == 6) {
        record.device_used_bytes = step << 30;
        record.device_total_bytes = std::int64_t{80} << 30;
      }
      log.step(record);
    }
    MemoryRecord memory{9, 1, {{"weights", 300}}, 345};
    memory.device_used_bytes = 7;
    memory.device_total_bytes = 11;
    log.memory(memory);
  }
  CHECK_FALSE(lines_of(dir / "metrics.jsonl")[1].contains("device_used_bytes"));
  const Records history = replayed(dir / "metrics.jsonl");
  std::vector<std::int64_t> used;  // of steps 1, 3, 6, 9
  for (const auto& step : history.steps) {
    used.push_back(step.record.device_used_bytes >> 30);
  }
  CHECK(used == std::vector<std::int64_t>{0, 2, 6, 0});
  CHECK(history.steps[1].record.device_total_bytes == std::int64_t{80} << 30);
  CHECK(history.taken->record.device_used_bytes == 7);
  CHECK(history.taken->record.device_total_bytes == 11);
}

TEST_CASE("without a peak there is no MFU anywhere", "[metrics]") {
  const ScratchFolder dir;
  {
    MetricsLog log;
    log.add(std::make_unique<MetricsFile>(dir / "metrics.jsonl"));
    log.add(std::make_unique<StatusFile>(dir / "status.json"));
    RunStart run = start_at(0, 1);
    run.flop_per_token = 8e8;
    log.start(run);
    log.step({.step = 1, .step_s = 0.5, .tokens_per_s = 1000});
    log.end({.step = 1, .code = fourfold::ExitCode{0}, .reason = "finished"});
  }
  const auto lines = lines_of(dir / "metrics.jsonl");
  CHECK(lines[0]["flop_per_token"] == 8e8);
  CHECK_FALSE(lines[0].contains("peak_flop_per_s"));
  CHECK_FALSE(lines[1].contains("mfu"));
  CHECK_FALSE(read_status(dir / "status.json")->mfu);
}

TEST_CASE("metrics that cannot be written end the run with their own code", "[metrics]") {
  const ScratchFolder dir;
  try {
    MetricsFile(dir / "none" / "metrics.jsonl").start(start_at(0, 1), 1);
    FAIL("opened");
  } catch (const fourfold::UserError& error) {
    CHECK(error.code() == fourfold::ExitCode::cannot_write);
  }
  MetricsFile full(dir / "metrics.jsonl");
  const fourfold::harness::FileSizeLimit limit(10);
  CHECK_THROWS_AS(full.step(step_at(1, 1), 1), fourfold::UserError);
}

TEST_CASE("status.json follows the run, and not every step", "[metrics]") {
  const ScratchFolder dir;
  const auto file = dir / "status.json";
  StatusFile status(file);
  status.start(start_at(0, 100), 1000);
  CHECK(json::parse(read_bytes(file))["loss"].is_null());
  CHECK(json::parse(read_bytes(file))["remaining_s"].is_null());
  status.step(step_at(1, 4.0), 1001);
  CHECK(json::parse(read_bytes(file))["step"] == 0);
  status.step(step_at(2, 3.5), 1006);
  CHECK(json::parse(read_bytes(file))["step"] == 2);
  status.evaluation({2, 3.25, 10, 1}, 1007);
  status.checkpoint({2, "ckpt/step-2", 10, 1, 1}, 1008);
  const json running = json::parse(read_bytes(file));
  CHECK(running["state"] == "running");
  CHECK(running["steps"] == 100);
  CHECK(running["loss"] == 3.5);
  CHECK(running["validation_loss"] == 3.25);
  CHECK(running["checkpoint"] == "ckpt/step-2");
  CHECK(running["checkpoint_step"] == 2);
  CHECK(running["code"].is_null());
  CHECK(running["deadline"].is_null());
  CHECK(running["step_s"] == step_at(2, 3.5).step_s);
  status.end({2, fourfold::ExitCode{75}, "stopped by signal"}, 1009);
  const json ended = json::parse(read_bytes(file));
  CHECK(ended["state"] == "ended");
  CHECK(ended["code"] == 75);
  CHECK(ended["updated"] == 1009);
}

TEST_CASE("what status.json says is read again", "[metrics]") {
  const ScratchFolder dir;
  const auto file = dir / "status.json";
  CHECK_FALSE(fourfold::telemetry::read_status(file));
  StatusFile status(file);
  fourfold::telemetry::RunStart start = start_at(0, 100);
  start.deadline_unix_s = 9000;
  status.start(start, 1000);
  const auto begun = fourfold::telemetry::read_status(file);
  REQUIRE(begun);
  CHECK_FALSE(begun->ended);
  CHECK_FALSE(begun->loss);
  CHECK_FALSE(begun->step_s);
  CHECK_FALSE(begun->remaining_s);
  CHECK_FALSE(begun->checkpoint_step);
  CHECK_FALSE(begun->code);
  CHECK(begun->deadline_unix_s == 9000);
  for (std::int64_t step = 1; step <= 20; ++step) {
    status.step(step_at(step, 3.5), 1000 + 10 * static_cast<double>(step));
  }
  status.checkpoint({20, "ckpt/step-20", 10, 1, 1}, 1208);
  status.end({20, fourfold::ExitCode{86}, "hang: rank 1"}, 1209);
  const auto ended = fourfold::telemetry::read_status(file);
  REQUIRE(ended);
  CHECK(ended->ended);
  CHECK(ended->step == 20);
  CHECK(ended->steps == 100);
  CHECK(ended->loss == 3.5);
  CHECK(ended->remaining_s.value_or(0) > 0);
  CHECK(ended->checkpoint == "ckpt/step-20");
  CHECK(ended->checkpoint_step == 20);
  CHECK(ended->updated_unix_s == 1209);
  CHECK(ended->code == fourfold::ExitCode::hang);
  CHECK(ended->reason == "hang: rank 1");
}

TEST_CASE("a start that ends before its first save keeps how long saves take", "[metrics]") {
  const ScratchFolder dir;
  const auto file = dir / "status.json";
  fourfold::telemetry::CheckpointRecord saved;
  saved.step = 2;
  saved.path = "ckpt/step-2";
  saved.longest_s = 60;
  {
    StatusFile first(file);
    first.start(start_at(0, 100), 1000);
    first.checkpoint(saved, 1001);
  }
  {
    StatusFile killed(file);
    killed.start(start_at(2, 100), 2000);
    killed.step(step_at(3, 4.0), 2010);
  }
  CHECK(fourfold::telemetry::longest_save_s_of(file) == 60);
  StatusFile refused(file);
  refused.end({2, fourfold::ExitCode{78}, "refused"}, 3000);
  CHECK(fourfold::telemetry::longest_save_s_of(file) == 60);
  StatusFile third(file);
  third.start(start_at(2, 100), 4000);
  saved.longest_s = 7;
  third.checkpoint(saved, 4001);
  CHECK(fourfold::telemetry::longest_save_s_of(file) == 7);
}

TEST_CASE("each start opens a TensorBoard file of its own", "[metrics]") {
  const ScratchFolder dir;
  {
    TensorBoardFile sink(dir.path());
    sink.start(start_at(0, 10), 1000);
    sink.step(step_at(1, 4.5), 1001);
    sink.evaluation({1, 4.25, 640, 0.5}, 1002);
    sink.start(start_at(5, 10), 2000);
    sink.step(step_at(6, 2.0), 2001);
  }
  std::vector<std::string> texts;
  for (const auto& entry : std::filesystem::directory_iterator(dir.path())) {
    CHECK(entry.path().filename().string().starts_with("events.out.tfevents."));
    texts.push_back(read_bytes(entry.path()));
  }
  REQUIRE(texts.size() == 2);
  std::ranges::sort(texts, std::greater<>(), &std::string::size);
  for (const char* tag : {"train/loss", "train/grad_norm", "train/lr", "validation/loss",
                          "speed/tokens_per_s", "speed/step_s", "speed/data_s"}) {
    CHECK(texts[0].find(tag) != std::string::npos);
  }
  CHECK(texts[0].find(std::string("\x00\x00\x90\x40", 4)) != std::string::npos);  // 4.5 as an f32
  CHECK(texts[1].find("validation/loss") == std::string::npos);
}

TEST_CASE("only every so many steps are passed on, with means over those between", "[metrics]") {
  const ScratchFolder dir;
  const auto file = dir / "metrics.jsonl";
  MetricsLog log(4);
  log.add(std::make_unique<MetricsFile>(file));
  log.start(start_at(10, 21));
  for (std::int64_t step = 11; step <= 18; ++step) {
    const auto seconds = static_cast<double>(step - 10);
    log.step({step, seconds, 1, 1, step * 100, seconds, 100 / seconds, seconds / 10});
  }
  const auto steps_seen = [&] {
    std::vector<std::int64_t> steps;
    for (const auto& step : replayed(file).steps) {
      steps.push_back(step.record.step);
    }
    return steps;
  };
  CHECK(steps_seen() == std::vector<std::int64_t>{11, 12, 16});
  const StepRecord mean =
      replayed(file).steps.back().record;  // steps 13 to 16: 3, 4, 5 and 6 seconds
  CHECK(mean.loss == 6);
  CHECK(mean.tokens == 1600);
  CHECK(mean.step_s == 4.5);
  CHECK(std::abs(mean.data_s - 1.8 / 4) < 1e-12);
  CHECK(std::abs(mean.tokens_per_s - 400.0 / 18) < 1e-9);

  log.flush();  // 17 and 18
  log.flush();
  CHECK(steps_seen() == std::vector<std::int64_t>{11, 12, 16, 18});
  log.step(step_at(19, 1));
  log.end({19, fourfold::ExitCode{75}, "stopped"});
  CHECK(steps_seen() == std::vector<std::int64_t>{11, 12, 16, 18, 19});
  CHECK(lines_of(file).back()["event"] == "end");

  log.start(start_at(20, 22));
  log.step(step_at(21, 1));
  log.step(step_at(22, 1));  // the last of the run
  CHECK(steps_seen().size() == 7);
}
