// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "recorded_ranges.hpp"
#include "run/tiny_run.hpp"

#include <catch2/catch_test_macros.hpp>
#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace fourfold::train {
namespace {

using harness::RecordedRange;
using harness::take_recorded_ranges;

/// How often each path was seen. Everything has to be over.
std::map<std::string, int> paths(const std::vector<RecordedRange>& ranges) {
  std::map<std::string, int> seen;
  for (const RecordedRange& range : ranges) {
    CAPTURE(range.path());
    CHECK(range.is_over);
    ++seen[range.path()];
  }
  return seen;
}

TEST_CASE("a profiler sees steps, their parts, passes and units", "[range]") {
  const test::TinyRun tiny("gpt2");
  take_recorded_ranges();
  // 8 sequences are two micro-batches of four; an evaluation and a checkpoint after the last step.
  // Of a graph the host enqueues no units.
  tiny.train(1, 2, "seen",
             {"train.micro_batch=4", "train.eval_every_steps=2", "checkpoint.async=true",
              "train.cuda_graphs=false"});
  const std::map<std::string, int> seen = paths(take_recorded_ranges());
  for (const std::string step : {"step 1", "step 2"}) {
    CAPTURE(step);
    CHECK(seen.contains(step));
    CHECK(seen.contains(step + " > load batch"));
    CHECK(seen.contains(step + " > reduce gradients"));
    CHECK(seen.contains(step + " > clip and update > optimizer"));
    CHECK(seen.contains(step + " > wait for the outcome"));
    for (const std::string pass : {"F0", "F1", "B0", "B1"}) {
      for (const std::string unit : {"embedding", "block 0", "block 1", "head"}) {
        CAPTURE(pass, unit);
        CHECK(seen.contains(step + " > forward and backward > " + pass + " > " + unit));
      }
    }
  }
  CHECK_FALSE(seen.contains("step 3"));
  CHECK(seen.contains("evaluation > block 0"));
  CHECK(seen.at("checkpoint") == 1);
  CHECK(seen.at("checkpoint > stage checkpoint") == 1);
  CHECK(seen.at("checkpoint > fetch the state from the device") == 1);
}

TEST_CASE("a micro-batch that is launched as a graph has a range for both passes", "[range]") {
  const test::TinyRun tiny("gpt2");
  take_recorded_ranges();
  constexpr int steps = 5;
  const parallel::GraphCounts graphs =
      tiny.train(1, steps, "graphs", {"train.micro_batch=2", "train.cuda_graphs=true"})
          .result.graphs;
  const std::map<std::string, int> seen = paths(take_recorded_ranges());
  std::int64_t only_launched = 0;
  for (int step = 1; step <= steps; ++step) {
    CAPTURE(step);
    const std::string passes = fmt::format("step {} > forward and backward > ", step);
    for (const int batch : {0, 1, 2}) {
      CAPTURE(batch);
      const std::string both = fmt::format("{0}F{1} B{1}", passes, batch);
      CHECK(seen.contains(both));
      const bool is_enqueued = seen.contains(fmt::format("{} > F{} > block 0", both, batch));
      CHECK(seen.contains(fmt::format("{} > B{} > block 0", both, batch)) == is_enqueued);
      only_launched += is_enqueued ? 0 : 1;
    }
    CHECK(seen.contains(passes + "F3 > block 0"));  // the last one sends gradients away
    CHECK(seen.contains(passes + "B3 > block 0"));
  }
  CHECK(graphs.captures > 0);
  CHECK(only_launched > 0);
  CHECK(only_launched == graphs.launches - graphs.captures);
}

TEST_CASE("each rank's ranges are its own", "[range]") {
  const test::TinyRun tiny("llama");
  take_recorded_ranges();
  tiny.train(2, 1, "two", {"mesh.pp=2", "train.micro_batch=4"});
  std::map<std::size_t, std::set<std::string>> by_thread;
  for (const RecordedRange& range : take_recorded_ranges()) {
    CHECK(range.is_over);
    by_thread[range.thread].insert(range.path());
  }
  const std::string pipeline = "step 1 > forward and backward > ";
  int senders = 0;
  int receivers = 0;
  for (const auto& [thread, seen] : by_thread) {
    senders += seen.contains(pipeline + "send activation 1") ? 1 : 0;
    receivers += seen.contains(pipeline + "receive activation 1") ? 1 : 0;
    const bool has_embedding = seen.contains(pipeline + "F0 > embedding");
    CHECK_FALSE((has_embedding && seen.contains(pipeline + "F0 > head")));
  }
  CHECK(senders == 1);
  CHECK(receivers == 1);
}

}  // namespace
}  // namespace fourfold::train
