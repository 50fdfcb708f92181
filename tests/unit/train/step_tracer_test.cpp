// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "tiny_run.hpp"

#include <fourfold/train/step_recorder.hpp>
#include <fourfold/train/step_tracer.hpp>

#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace fourfold::train {
namespace {

using test::TinyRun;

std::string content(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Slices by process ("step 2, measured") and name.
using Slices = std::map<std::string, std::map<std::string, int>>;

Slices slices_of(const std::filesystem::path& log_dir) {
  const nlohmann::json events =
      nlohmann::json::parse(content(log_dir / "trace.json")).at("traceEvents");
  std::map<int, std::string> processes;
  Slices slices;
  for (const nlohmann::json& event : events) {
    if (event.at("name") == "process_name") {
      processes[event.at("pid")] = event.at("args").at("name");
    } else if (event.at("ph") == "X") {
      CHECK(event.at("dur").get<double>() >= 0);
      ++slices[processes.at(event.at("pid"))][event.at("name")];
    }
  }
  return slices;
}

std::set<std::string> processes_of(const std::filesystem::path& log_dir) {
  std::set<std::string> names;
  for (const auto& [process, ignored] : slices_of(log_dir)) {
    names.insert(process);
  }
  return names;
}

/// Begins and ends of collectives of a process of the trace, in microseconds, by operation.
std::map<std::string, std::vector<std::pair<double, double>>> collectives_of(
    const std::filesystem::path& log_dir, int process) {
  const nlohmann::json events =
      nlohmann::json::parse(content(log_dir / "trace.json")).at("traceEvents");
  std::map<std::int64_t, double> begins;
  std::map<std::string, std::vector<std::pair<double, double>>> collectives;
  for (const nlohmann::json& event : events) {
    if (event.value("cat", "") != "communication" || event.at("pid") != process) {
      continue;
    }
    const auto id = event.at("id").get<std::int64_t>();
    const auto time_us = event.at("ts").get<double>();
    if (event.at("ph") == "b") {
      begins[id] = time_us;
      CHECK(event.at("args").at("ranks") == 2);
      CHECK(event.at("args").at("bytes") > 0);
    } else {
      const std::string name = event.at("name");
      collectives[name.substr(0, name.find(' '))].emplace_back(begins.at(id), time_us);
    }
  }
  return collectives;
}

const std::vector<std::string> two_stages{"mesh.pp=2", "train.micro_batch=2", "log.trace=true"};

TEST_CASE("log.trace writes measured and planned steps of the first pipeline", "[step_tracer]") {
  const TinyRun tiny("gpt2");
  std::vector<std::string> overrides = two_stages;
  overrides.push_back("log.trace_steps=2");
  const auto log_dir = tiny.checkpoints("traced").parent_path();
  const test::RunTrace traced = tiny.train(4, 5, "traced", overrides);
  const Slices slices = slices_of(log_dir);
  REQUIRE(processes_of(log_dir) ==
          std::set<std::string>{"step 2, measured", "step 2, planned by its costs",
                                "step 3, measured", "step 3, planned by its costs"});
  // dp 2: two micro-batches of two sequences each; forward and backward on two ranks.
  const std::map<std::string, int> passes{{"F0", 2}, {"F1", 2}, {"B0", 2}, {"B1", 2}};
  CHECK(slices.at("step 2, planned by its costs") == passes);
  std::map<std::string, int> with_parts = passes;
  for (const StepPart part :
       {StepPart::load, StepPart::pipeline, StepPart::reduce, StepPart::update}) {
    with_parts[std::string(name(part))] = 2;
  }
  CHECK(slices.at("step 3, measured") == with_parts);
  const std::string picture = content(log_dir / "timeline.svg");
  CHECK(picture.find("step 3, planned by its costs") != std::string::npos);
  CHECK(picture.find("% measured") != std::string::npos);
  // Looking does not change what is seen.
  CHECK(traced.losses == tiny.train(4, 5, "plain", {"mesh.pp=2", "train.micro_batch=2"}).losses);
  CHECK_FALSE(std::filesystem::exists(tiny.checkpoints("plain").parent_path() / "trace.json"));
}

TEST_CASE("a restart is traced from its own second step on", "[step_tracer]") {
  const TinyRun tiny("gpt2");
  const auto log_dir = tiny.checkpoints("again").parent_path();
  tiny.train(2, 1, "again", two_stages);  // the only step
  CHECK(processes_of(log_dir) ==
        std::set<std::string>{"step 1, measured", "step 1, planned by its costs"});
  tiny.train(2, 4, "again", two_stages);
  CHECK(processes_of(log_dir) ==
        std::set<std::string>{"step 3, measured", "step 3, planned by its costs",
                              "step 4, measured", "step 4, planned by its costs"});
}

TEST_CASE("a trace that cannot be written does not end the run", "[step_tracer]") {
  const TinyRun tiny("gpt2");
  const auto log_dir = tiny.checkpoints("blocked").parent_path();
  std::filesystem::create_directories(log_dir / "trace.json" / "in the way");
  const test::RunTrace traced = tiny.train(2, 4, "blocked", two_stages);
  CHECK(traced.result.progress.step == 4);
  CHECK(traced.losses.size() == 4);
}

TEST_CASE("a trace shows gathers of weights and sums of gradients beside the passes",
          "[step_tracer]") {
  const TinyRun tiny("gpt2");
  const auto traced = [&](const std::string& name, const std::vector<std::string>& more,
                          int process = 1) {
    std::vector<std::string> overrides = two_stages;
    overrides.insert(overrides.end(), more.begin(), more.end());
    tiny.train(4, 4, name, overrides);
    return collectives_of(tiny.checkpoints(name).parent_path(), process);
  };
  const auto whole = traced("whole", {"mesh.dp_bucket_mb=0.01"});
  CHECK(whole.size() == 1);
  CHECK(whole.at("all_reduce").size() > 4);  // buckets, on two ranks

  // Gathers of updated weights are over in the step that waits for them, so in the second of two.
  const auto updated =
      traced("updated", {"mesh.zero=1", "mesh.dp_bucket_mb=0.01", "log.trace_steps=2"}, 3);
  CHECK(updated.at("reduce_scatter").size() > 4);
  CHECK(updated.at("all_gather").size() > 4);

  const auto shared = traced("shared", {"mesh.zero=3", "model.layers=8"});
  // Two stages, two micro-batches: four blocks are gathered for each forward pass, and most for
  // each backward one.
  CHECK(shared.at("all_gather").size() >= 2 * 2 * (4 + 2));
  CHECK(shared.at("reduce_scatter").size() >= 2 * 2 * 4);
  for (const auto& [operation, spans] : shared) {
    for (const auto& [begin_us, end_us] : spans) {
      CAPTURE(operation);
      CHECK(begin_us <= end_us);
    }
  }
}

}  // namespace
}  // namespace fourfold::train
