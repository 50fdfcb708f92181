// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Runs with checkpoint.node_local_dir: they compute as others do, go on from a node-local step
/// when they were killed, and leave none behind.
#include "captured_log.hpp"
#include "copied_run.hpp"
#include "run/tiny_run.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/io/checkpoint_find.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

using namespace fourfold;
using Catch::Matchers::ContainsSubstring;
using fourfold::test::RunTrace;
using fourfold::test::TinyRun;
namespace fs = std::filesystem;

namespace {

using Options = std::vector<std::string>;
using Steps = std::vector<std::int64_t>;

/// A node-local step after steps 3, 6 and 9 beside checkpoints after 4, 8 and the last.
Options with_fast(const TinyRun& tiny, const std::string& folder, Options options) {
  options.push_back("checkpoint.node_local_dir='" + (tiny.folder() / folder).string() + "'");
  options.emplace_back("checkpoint.node_local_every_steps=3");
  return options;
}

Steps steps_in(const fs::path& folder) {
  return io::list_steps(folder);
}

/// All of them, whatever their runs' words.
Steps local_steps(const TinyRun& tiny, const std::string& folder) {
  Steps steps;
  for (const auto& home : fs::directory_iterator(tiny.folder() / folder)) {
    for (const std::int64_t step : steps_in(home.path())) {
      steps.push_back(step);
    }
  }
  return steps;
}

/// What is on disk when a run is killed after a step was made and before it is saved. At 8:
/// checkpoint 4 and node-local step 6; at 9 also checkpoint 8.
RunTrace killed_at(std::int64_t killing, const TinyRun& tiny, int ranks, const Options& options) {
  return tiny.train_and_look(
      ranks, 9, "whole", with_fast(tiny, "fast", options), [&](std::int64_t step) {
        if (step == killing) {
          harness::copy_run(tiny.checkpoints("whole"), tiny.checkpoints("killed"));
          fs::remove(tiny.checkpoints("killed") / ".lease");
          fs::copy(tiny.folder() / "fast", tiny.folder() / "fast-killed",
                   fs::copy_options::recursive);
        }
      });
}

/// A byte of the values, of which manifest and index tell nothing.
void damage_payload(const fs::path& step) {
  for (const auto& entry : fs::directory_iterator(step)) {
    if (entry.path().filename().string().starts_with("shard-")) {
      std::string bytes = harness::read_bytes(entry.path());
      bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 1);
      harness::write_bytes(entry.path(), bytes);
    }
  }
}

}  // namespace

TEST_CASE(
    "node-local steps change nothing that a run computes and saves, and are gone at its end") {
  const TinyRun tiny("gpt2");
  struct Way {
    std::string name;
    int ranks;
    Options options;
  };
  const std::vector<Way> ways = {
      {"one", 1, {}},
      {"shares", 4, {"mesh.zero=1", "checkpoint.files=node"}},
      {"gathered", 2, {"mesh.zero=3"}},
      {"offloaded", 2, {"offload.optimizer=cpu"}},
      {"pipeline", 2, {"mesh.pp=2"}},
      {"background", 2, {"checkpoint.async=true"}},
  };
  for (const Way& way : ways) {
    CAPTURE(way.name);
    const RunTrace plain = tiny.train(way.ranks, 11, way.name + "-plain", way.options);
    std::vector<Steps> seen;
    const RunTrace fast = tiny.train_and_look(
        way.ranks, 11, way.name, with_fast(tiny, way.name + "-fast", way.options),
        [&](std::int64_t) { seen.push_back(local_steps(tiny, way.name + "-fast")); });
    CHECK(fast.losses == plain.losses);
    CHECK(fast.weights == plain.weights);
    CHECK(steps_in(tiny.checkpoints(way.name)) == steps_in(tiny.checkpoints(way.name + "-plain")));
    // After steps 1 to 3 there is none yet; the newest alone stays.
    const std::vector<Steps> expected{{}, {}, {}, {3}, {3}, {3}, {6}, {6}, {6}, {9}, {9}};
    CHECK(seen == expected);
    CHECK(fs::is_empty(tiny.folder() / (way.name + "-fast")));
    CHECK_FALSE(fs::exists(tiny.checkpoints(way.name) / ".fast-level"));
  }
}

TEST_CASE("a run that was killed goes on from its newest node-local step, with the same bits") {
  const TinyRun tiny("llama");
  const int ranks = GENERATE(1, 2);
  const Options options = ranks == 1 ? Options{"checkpoint.keep_last=0"}
                                     : Options{"mesh.zero=2", "checkpoint.keep_last=0"};
  const RunTrace whole = killed_at(8, tiny, ranks, options);
  REQUIRE(steps_in(tiny.checkpoints("killed")) == Steps{4});
  REQUIRE(local_steps(tiny, "fast-killed") == Steps{6});
  SECTION("on the same mesh") {
    const RunTrace again = tiny.train(ranks, 9, "killed", with_fast(tiny, "fast-killed", options));
    CHECK(again.losses == std::vector<double>(whole.losses.begin() + 6, whole.losses.end()));
    CHECK(again.weights == whole.weights);
    CHECK(steps_in(tiny.checkpoints("killed")) == Steps{4, 6, 8, 9});
    CHECK(fs::is_empty(tiny.folder() / "fast-killed"));
  }
  SECTION("on another") {
    const RunTrace again = tiny.train(
        4, 9, "killed", with_fast(tiny, "fast-killed", {"mesh.tp=2", "checkpoint.keep_last=0"}));
    CHECK(again.losses.size() == 3);
    CHECK(std::abs(again.losses.back() - whole.losses.back()) < 1e-4);
  }
  SECTION("one that has no node-local tier any more goes on from the checkpoint, and says so") {
    const harness::CapturedLog log;
    const RunTrace again = tiny.train(ranks, 9, "killed", options);
    CHECK(again.losses == std::vector<double>(whole.losses.begin() + 4, whole.losses.end()));
    CHECK_THAT(log.text(),
               ContainsSubstring("an earlier start of this run had checkpoint.node_local_dir"));
    // What lies there is void from then on.
    tiny.train(ranks, 10, "killed", with_fast(tiny, "fast-killed", options));
    CHECK(local_steps(tiny, "fast-killed") == Steps{6});
  }
}

TEST_CASE(
    "a node-local step is taken when checkpoints after it turn out damaged while they are loaded") {
  const TinyRun tiny("gpt2");
  const Options options{"checkpoint.keep_last=0"};
  const RunTrace whole = killed_at(9, tiny, 2, options);
  REQUIRE(steps_in(tiny.checkpoints("killed")) == Steps{4, 8});
  const bool all = GENERATE(false, true);
  for (const std::int64_t step : all ? Steps{4, 8} : Steps{8}) {
    damage_payload(tiny.checkpoints("killed") / ("step-00000000" + std::to_string(step)));
  }
  const harness::CapturedLog log;
  const RunTrace again = tiny.train(2, 9, "killed", with_fast(tiny, "fast-killed", options));
  CHECK(again.losses == std::vector<double>(whole.losses.begin() + 6, whole.losses.end()));
  CHECK(again.weights == whole.weights);
  CHECK_THAT(log.text(), ContainsSubstring("step-000000008"));
  CHECK(steps_in(tiny.checkpoints("killed")) == Steps{4, 6, 8, 9});
}

TEST_CASE("a run file that is refused costs no checkpoint, whatever retention says") {
  const TinyRun tiny("gpt2");
  killed_at(8, tiny, 2, {});
  REQUIRE(steps_in(tiny.checkpoints("killed")) == Steps{4});
  const Options changed =
      with_fast(tiny, "fast-killed", {"checkpoint.keep_last=1", "optim.lr=0.5"});
  CHECK_THROWS_AS(tiny.train(2, 9, "killed", changed), UserError);
  CHECK(steps_in(tiny.checkpoints("killed")) == Steps{4});  // a start that is refused moves nothing
  CHECK(local_steps(tiny, "fast-killed") == Steps{6});
}

TEST_CASE(
    "a chain of jobs that began at a path goes on from a node-local step before its own first "
    "one") {
  const TinyRun tiny("gpt2");
  const bool weights_only = GENERATE(false, true);
  tiny.train(2, 4, "origin");
  const std::string origin = (tiny.checkpoints("origin") / "step-000000004").string();
  Options options{"checkpoint.every_steps=0", "checkpoint.resume='" + origin + "'"};
  if (weights_only) {
    options.emplace_back("checkpoint.weights_only=true");
  }
  const RunTrace whole = killed_at(8, tiny, 2, options);
  REQUIRE(steps_in(tiny.checkpoints("killed")).empty());
  REQUIRE(local_steps(tiny, "fast-killed") == Steps{6});
  SECTION("started again as it was") {
    const RunTrace again = tiny.train(2, 9, "killed", with_fast(tiny, "fast-killed", options));
    REQUIRE(again.losses.size() == 3);
    CHECK(again.losses == std::vector<double>(whole.losses.end() - 3, whole.losses.end()));
    CHECK(again.weights == whole.weights);
    CHECK(steps_in(tiny.checkpoints("killed")) == Steps{6, 9});
  }
  SECTION("and when that path is gone") {
    fs::remove_all(origin);
    const RunTrace again = tiny.train(2, 9, "killed", with_fast(tiny, "fast-killed", options));
    CHECK(again.losses == std::vector<double>(whole.losses.end() - 3, whole.losses.end()));
    CHECK(again.weights == whole.weights);
  }
  SECTION("at another path it is another run, which says what it leaves behind") {
    fs::copy(origin, tiny.folder() / "copied", fs::copy_options::recursive);
    options[1] = "checkpoint.resume='" + (tiny.folder() / "copied").string() + "'";
    const harness::CapturedLog log;
    const RunTrace again = tiny.train(2, 9, "killed", with_fast(tiny, "fast-killed", options));
    CHECK(again.losses == whole.losses);
    CHECK_THAT(log.text(),
               ContainsSubstring("node-local steps of an earlier start are removed (of step "
                                 "6): this one ") &&
                   ContainsSubstring(weights_only ? "begins anew" : "goes on from step 4"));
    CHECK(steps_in(tiny.checkpoints("killed")) == Steps{9});
  }
}

TEST_CASE("a run that begins anew removes the node-local steps of what was there before") {
  const TinyRun tiny("gpt2");
  killed_at(8, tiny, 2, {});
  fs::remove_all(tiny.checkpoints("killed") / "step-000000004");
  const bool at_path = GENERATE(true, false);
  Options options = with_fast(tiny, "fast-killed", {});
  options.push_back("checkpoint.resume='" +
                    (at_path ? (tiny.checkpoints("whole") / "step-000000004").string() : "never") +
                    "'");
  std::vector<Steps> seen;
  const harness::CapturedLog log;
  const RunTrace again = tiny.train_and_look(2, 9, "killed", options, [&](std::int64_t) {
    seen.push_back(local_steps(tiny, "fast-killed"));
  });
  CHECK(again.losses.size() == (at_path ? 5 : 9));
  CHECK(seen.front().empty());
  CHECK(seen.back() == Steps{6});
  CHECK_THAT(log.text(), ContainsSubstring("are removed (of step 6): this one ") &&
                             ContainsSubstring(at_path ? "goes on from step 4" : "begins anew"));
}
