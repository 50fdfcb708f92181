// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "run/tiny_run.hpp"

#include <fourfold/train/step_recorder.hpp>
#include <fourfold/train/step_tracer.hpp>

#include <catch2/catch_test_macros.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
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

/// How often what was sent: "all_reduce tp" and bytes.
using Sent = std::map<std::pair<std::string, std::int64_t>, int>;

std::set<std::string> lines_of(const Sent& sent) {
  std::set<std::string> lines;
  for (const auto& [what, times] : sent) {
    lines.insert(fmt::format("{}, {} bytes: {} times", what.first, what.second, times));
  }
  return lines;
}

/// Over these communicators, of two ranks each, in a process of the trace.
std::set<std::string> sent_over(const std::set<std::string>& communicators,
                                const std::filesystem::path& log_dir, int process) {
  const nlohmann::json events =
      nlohmann::json::parse(content(log_dir / "trace.json")).at("traceEvents");
  Sent sent;
  double fastest_gb_s = 0;
  for (const nlohmann::json& event : events) {
    if (event.value("cat", "") != "communication" || event.at("pid") != process ||
        event.at("ph") != "b" || !event.contains("args")) {
      continue;
    }
    const nlohmann::json& facts = event.at("args");
    const auto communicator = facts.at("communicator").get<std::string>();
    if (communicators.contains(communicator)) {
      CHECK(facts.at("ranks") == 2);
      fastest_gb_s = std::max(fastest_gb_s, facts.value("busbw_gb_s", 0.0));
      ++sent[{facts.at("operation").get<std::string>() + " " + communicator, facts.at("bytes")}];
    }
  }
  CHECK(fastest_gb_s > 0);
  return lines_of(sent);
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

// Two stages of a block each, both in two by features and by tokens; four micro-batches of two
// sequences, of which a rank has 8 of 16 tokens: 16 rows of 32 features, f32.
constexpr int micro_batches = 4;
constexpr int passes = 2 * micro_batches;  // through a block, on the two ranks of the trace
constexpr std::int64_t rows_bytes = 16 * 32 * 4;
constexpr std::int64_t loss_bytes = 2 * 16 * 3 * 4;  // of each part of a row three numbers
constexpr std::int64_t tied_bytes = 27 * 32 * 4;     // of 53 words
constexpr std::int64_t head_bytes = 16 * 8 * 4;      // 16 rows of one of a rank's two heads

/// By a step; the same as by the next one, though there is an evaluation between them.
std::set<std::string> sent_in_step(const std::string& name, const std::vector<std::string>& more) {
  const TinyRun tiny("gpt2");
  std::vector<std::string> overrides = two_stages;
  overrides.insert(overrides.end(), {"mesh.tp=2", "mesh.cp=2", "model.heads=4", "log.trace_steps=2",
                                     "train.eval_every_steps=1"});
  overrides.insert(overrides.end(), more.begin(), more.end());
  const test::RunTrace traced = tiny.train(8, 4, name, overrides);
  overrides.push_back("log.trace=false");
  CHECK(traced.losses == tiny.train(8, 4, name + "-plain", overrides).losses);
  const auto log_dir = tiny.checkpoints(name).parent_path();
  const std::set<std::string> communicators{"tp", "cp", "pp.tied"};
  std::set<std::string> sent = sent_over(communicators, log_dir, 1);
  CHECK(sent == sent_over(communicators, log_dir, 3));
  return sent;
}

TEST_CASE("a trace shows what tensor parallelism, ring attention and a tied embedding send",
          "[step_tracer]") {
  // A block sums twice forward and twice backward, the embedding and the gradient of the head once.
  // Keys and values make a hop forward, one backward, and their gradients one.
  CHECK(sent_in_step("plain", {"mesh.sequence_parallel=false"}) ==
        lines_of({{{"all_reduce tp", rows_bytes}, 4 * passes + 2 * micro_batches},
                  {{"all_gather tp", loss_bytes}, micro_batches},
                  {{"recv cp", 2 * 2 * head_bytes}, 3 * passes},
                  {{"all_reduce pp.tied", tied_bytes}, 2}}));

  // Sums are scattered. A block gathers rows twice forward and four times backward, the embedding
  // once, the head twice. Of five norms each rank has gradients of its rows: weight and bias.
  CHECK(sent_in_step("sequence", {"mesh.sequence_parallel=true"}) ==
        lines_of({{{"reduce_scatter tp", rows_bytes}, 4 * passes + 2 * micro_batches},
                  {{"all_gather tp", rows_bytes}, 6 * passes + 3 * micro_batches},
                  {{"all_gather tp", loss_bytes}, micro_batches},
                  {{"all_reduce tp", 32 * 4}, 5 * 2},
                  {{"recv cp", 2 * 2 * head_bytes}, 3 * passes},
                  {{"all_reduce pp.tied", tied_bytes}, 2}}));
}

TEST_CASE("a trace shows what attention by all-gather and by heads sends", "[step_tracer]") {
  const auto with_others = [](Sent sent) {
    sent[{"all_reduce tp", rows_bytes}] = 4 * passes + 2 * micro_batches;
    sent[{"all_gather tp", loss_bytes}] = micro_batches;
    sent[{"all_reduce pp.tied", tied_bytes}] = 2;
    return lines_of(sent);
  };
  // Keys and values of both ranks, forward and backward; their gradients.
  CHECK(
      sent_in_step("allgather", {"mesh.context_mode=allgather", "mesh.sequence_parallel=false"}) ==
      with_others({{{"all_gather cp", 2 * 2 * 2 * head_bytes}, 2 * passes},
                   {{"reduce_scatter cp", 2 * 2 * 2 * head_bytes}, passes}}));

  // A head with all tokens for two heads with half of them: q, k and v go, out comes back; q, dout,
  // k and v go, and of every query a number; dq comes back, then dk with dv.
  CHECK(sent_in_step("ulysses", {"mesh.context_mode=ulysses", "mesh.sequence_parallel=false"}) ==
        with_others({{{"all_to_all cp", 3 * 2 * head_bytes}, passes},
                     {{"all_to_all cp", 2 * head_bytes}, 2 * passes},
                     {{"all_to_all cp", 4 * 2 * head_bytes}, passes},
                     {{"all_to_all cp", 2 * 16 * 4}, passes},
                     {{"all_to_all cp", 2 * 2 * head_bytes}, passes}}));
}

TEST_CASE("a trace shows sums over the ranks that share a key/value head", "[step_tracer]") {
  const TinyRun tiny("llama");
  std::vector<std::string> overrides = two_stages;
  overrides.insert(overrides.end(), {"mesh.tp=4", "model.heads=4", "model.kv_heads=2"});
  tiny.train(8, 4, "shared", overrides);
  // Of the weights of keys and values, a head of 8 features of 32, in two blocks.
  CHECK(sent_over({"tp.kv"}, tiny.checkpoints("shared").parent_path(), 1) ==
        lines_of({{{"all_reduce tp.kv", 8 * 32 * 4}, 2 * 2}}));
}

}  // namespace
}  // namespace fourfold::train
