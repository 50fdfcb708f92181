// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "recorded_ranges.hpp"
#include "tiny_run.hpp"

#include <catch2/catch_test_macros.hpp>

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
  // 8 sequences are two micro-batches of four; an evaluation and a checkpoint behind the last step.
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
