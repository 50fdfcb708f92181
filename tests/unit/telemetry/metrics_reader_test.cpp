// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "replayed_records.hpp"
#include "scratch_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/telemetry/metrics.hpp>

#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

#include <cmath>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <vector>

using namespace fourfold::telemetry;
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

/// What restarts leave, by the plainest means: everything is kept, and cut off at each start.
struct PlainHistory {
  std::vector<std::pair<std::int64_t, double>> steps;
  std::vector<std::pair<std::int64_t, double>> evaluations;
  std::size_t starts = 0;

  void add(const json& line) {
    const std::string event = line["event"];
    const std::int64_t step = line.value("step", std::int64_t{0});
    if (event == "step") {
      steps.emplace_back(step, line["loss"]);
    } else if (event == "eval") {
      evaluations.emplace_back(step, line["loss"]);
    } else {
      const std::int64_t from = line["from_step"];
      if (from <= 0) {
        *this = {};
      }
      const auto is_void = [=](const auto& each) { return each.first > from; };
      std::erase_if(steps, is_void);
      std::erase_if(evaluations, is_void);
      ++starts;
    }
  }
};

}  // namespace

TEST_CASE("records read back as they were, numbers that are not finite as NaN", "[metrics]") {
  const ScratchFolder dir;
  const auto file = dir / "metrics.jsonl";
  {
    MetricsFile sink(file);
    sink.start(start_at(0, 3), 1);
    sink.step(step_at(1, 1.0 / 3.0), 2);
    sink.step(step_at(2, std::numeric_limits<double>::quiet_NaN()), 3);
    sink.step(step_at(3, std::numeric_limits<double>::infinity()), 4);
    sink.memory({3, 1, {{"weights", 5000000000}, {"gradients", 7}}, 5000000001}, 5);
    sink.end({3, fourfold::ExitCode{65}, "the loss is \"nan\""}, 5);
  }
  const Records history = replayed(file);
  CHECK(history.damaged_lines == 0);
  REQUIRE(history.starts.size() == 1);
  CHECK(history.starts[0].record.rank_hosts == std::vector<std::string>{"a", "b"});
  CHECK(history.starts[0].record.libraries.at(0).second == "4.0.2");
  CHECK(history.starts[0].record.data_plane_bytes == 6320000);
  REQUIRE(history.taken.has_value());
  CHECK(history.taken->record.rank == 1);
  CHECK(history.taken->record.planned_bytes.at(0).first == "weights");  // not by alphabet
  CHECK(history.taken->record.all_planned_bytes() == 5000000007);
  CHECK(history.taken->record.taken_bytes == 5000000001);
  REQUIRE(history.steps.size() == 3);
  CHECK(history.steps[0].record.loss == 1.0 / 3.0);  // every bit
  CHECK(history.steps[0].record.tokens == 64);
  CHECK(std::isnan(history.steps[1].record.loss));
  CHECK(std::isnan(history.steps[2].record.loss));
  CHECK(history.last_end->record.code == fourfold::ExitCode::data_corrupt);
  CHECK(history.last_end->unix_time_s == 5);
}

TEST_CASE("a restart is marked and replaces the steps it does again", "[metrics]") {
  const ScratchFolder dir;
  const auto file = dir / "metrics.jsonl";
  {
    MetricsFile sink(file);
    sink.start(start_at(0, 6), 1);
    for (std::int64_t step = 1; step <= 4; ++step) {
      sink.step(step_at(step, 10), 2);
    }
    sink.evaluation({4, 9, 1, 1}, 2);
    sink.checkpoint({2, "step-2", 1, 1, 3}, 2);
    sink.end({4, fourfold::ExitCode{85}, "node fault"}, 3);
  }
  {
    MetricsFile sink(file);
    sink.start(start_at(2, 6), 10);
    sink.step(step_at(3, 5), 11);
  }
  CHECK(lines_of(file).at(8)["event"] == "resume");
  CHECK(lines_of(file).at(8)["from_step"] == 2);
  const Records history = replayed(file);
  CHECK(history.starts.size() == 2);
  REQUIRE(history.steps.size() == 3);
  CHECK(history.steps[1].record.loss == 10);
  CHECK(history.steps[2].record.loss == 5);
  CHECK(history.evaluations.empty());
  CHECK(history.checkpoints.size() == 1);
  CHECK_FALSE(history.last_end.has_value());

  MetricsFile(file).start(start_at(0, 6), 20);  // a new run in the same directory
  CHECK(replayed(file).steps.empty());
  CHECK(replayed(file).starts.size() == 1);
}

TEST_CASE("a line that a crash cut off costs one line", "[metrics]") {
  const ScratchFolder dir;
  const auto file = dir / "metrics.jsonl";
  write_bytes(file, "{\"event\":\"step\",\"step\":1,\"loss\":2.0}\n{\"event\":\"step\",\"st");
  { MetricsFile(file).step(step_at(3, 1.0), 5); }
  const Records history = replayed(file);
  CHECK(history.damaged_lines == 1);
  REQUIRE(history.steps.size() == 2);
  CHECK(history.steps[1].record.step == 3);
}

TEST_CASE("damaged metrics never do more than miss", "[metrics]") {
  const ScratchFolder dir;
  const Records history = replayed(dir.write(
      "metrics.jsonl",
      "\n\n[1,2]\nnull\n{\"event\":5}\n{\"event\":\"later\"}\n{\"event\":\"step\",\"step\":\"x\","
      "\"loss\":[]}\n"
      "{\"event\":\"start\",\"rank_hosts\":{\"a\":1},\"libraries\":[[1],[\"a\",\"b\"],3]}"
      "\n{\"event\":\"memory\",\"planned_bytes\":{\"a\":9223372036854775807,\"b\":"
      "9223372036854775807,"
      "\"c\":\"x\"},\"taken_bytes\":null}\n\x80\xff\n"));
  REQUIRE(history.taken.has_value());
  CHECK(history.taken->record.all_planned_bytes() == -2);
  CHECK(history.taken->record.taken_bytes == 0);
  CHECK(history.damaged_lines == 4);
  CHECK(history.steps.empty());  // the start at step 0 came after it
  CHECK(history.starts.at(0).record.rank_hosts.empty());
  CHECK(history.starts.at(0).record.libraries.size() == 1);
  CHECK_THROWS_AS(MetricsReader(dir / "none" / "metrics.jsonl"), fourfold::UserError);
}

TEST_CASE("any order of starts and steps leaves what cutting off at each start does",
          "[metrics_reader]") {
  const ScratchFolder dir;
  std::mt19937 random(5);  // NOLINT(cert-msc51-cpp): the same runs each time
  const auto below = [&](int bound) {
    return static_cast<std::int64_t>(random() % static_cast<unsigned>(bound));
  };
  for (int run = 0; run < 200; ++run) {
    PlainHistory plain;
    std::ostringstream text;
    for (int i = 0; i < 60; ++i) {
      const std::int64_t step = below(12) - 1;
      const std::int64_t kind = below(8);
      const json line = kind == 0
                            ? json{{"event", step > 0 ? "resume" : "start"}, {"from_step", step}}
                        : kind == 1 ? json{{"event", "eval"}, {"step", step}, {"loss", i}}
                                    : json{{"event", "step"}, {"step", step}, {"loss", i}};
      plain.add(line);
      text << (kind == 2 ? " " : "") << line.dump();  // keys by alphabet, as other writers may
      text << (below(20) == 0 ? "\n\n" : "\n");
    }
    const Records records = replayed(dir.write("metrics.jsonl", text.str()));
    std::vector<std::pair<std::int64_t, double>> steps;
    for (const auto& each : records.steps) {
      steps.emplace_back(each.record.step, each.record.loss);
    }
    std::vector<std::pair<std::int64_t, double>> evaluations;
    for (const auto& each : records.evaluations) {
      evaluations.emplace_back(each.record.step, each.record.loss);
    }
    CAPTURE(run, text.str());
    REQUIRE(steps == plain.steps);
    REQUIRE(evaluations == plain.evaluations);
    REQUIRE(records.starts.size() == plain.starts);
  }
}

TEST_CASE("of a run that goes on the reader sees what was there", "[metrics_reader]") {
  const ScratchFolder dir;
  const auto file = dir / "metrics.jsonl";
  MetricsFile sink(file);
  sink.start(start_at(0, 9), 1);
  sink.step(step_at(1, 4), 2);
  sink.step(step_at(2, 3), 2);
  MetricsReader reader(file);
  sink.start(start_at(1, 9), 3);
  sink.step(step_at(2, 5), 4);
  Records records;
  CHECK(reader.replay(records) == 0);
  REQUIRE(records.steps.size() == 2);
  CHECK(records.steps[1].record.loss == 3);
  CHECK(records.starts.size() == 1);
}

TEST_CASE("numbers and names that JSON readers differ about", "[metrics_reader]") {
  const ScratchFolder dir;
  const Records records = replayed(
      dir.write("metrics.jsonl",
                "{\"time\":5,\"loss\":1,\"event\":\"step\",\"step\":7}\n"  // another order
                "  {\"event\":\"step\",\"step\":8,\"loss\":18446744073709551615}  \n"  // above 2^63
                "{\"event\":\"step\",\"step\":9,\"loss\":1e999}\n"                     // no double
                "{\"event\":\"step\",\"step\":10.0,\"loss\":-0.0,\"lr\":\"x\"}\n"
                "{\"event\":\"st\\u0065p\",\"step\":11,\"loss\":2}\n"
                "{\"event\":\"step\",\"step\":12,\"loss\":2,\"note\":\"\xff\"}\n"  // not UTF-8
                "{\"event\":\"eval\",\"step\":12,\"loss\":" +
                    std::string(3000, '[') + "\n{\"event\":\"step\",\"step\":13}"));
  REQUIRE(records.steps.size() == 5);
  CHECK(records.steps[0].record.step == 7);
  CHECK(records.steps[0].unix_time_s == 5);
  CHECK(records.steps[1].record.loss == 18446744073709551615.0);
  CHECK(records.steps[2].record.step == 0);  // 10.0 is no integer
  CHECK(std::isnan(records.steps[2].record.lr));
  CHECK(records.steps[3].record.step == 11);
  CHECK(records.steps[4].record.step == 13);
  CHECK(records.damaged_lines == 3);
}
