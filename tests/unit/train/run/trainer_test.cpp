// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// Whole training runs over the threads transport, compared with the one-rank run.
#include "tiny_run.hpp"

#include <fourfold/comm/thread_group.hpp>
#include <fourfold/train/saved_model.hpp>
#include <fourfold/train/stop_request.hpp>
#include <fourfold/train/trainer.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

using Catch::Matchers::StartsWith;
using fourfold::ExitCode;
using fourfold::test::check_close;
using fourfold::test::RunTrace;
using fourfold::test::TinyRun;
namespace train = fourfold::train;

TEST_CASE("losses of any number of data-parallel ranks are those of one rank", "[trainer]") {
  const std::string family = GENERATE("gpt2", "llama");
  const TinyRun tiny(family);
  const RunTrace one = tiny.train(1, 20, "dp1");
  REQUIRE(one.losses.size() == 20);
  CHECK(one.losses.back() < 0.8 * one.losses.front());  // it learns
  for (const int ranks : {2, 4, 8}) {
    const RunTrace several = tiny.train(ranks, 20, "dp" + std::to_string(ranks));
    check_close(several.losses, one.losses, 1e-6);
    check_close(several.evaluations, one.evaluations, 1e-6);
  }
}

TEST_CASE("buckets smaller than a unit and accumulation change nothing", "[trainer]") {
  const TinyRun tiny("gpt2");
  const RunTrace one = tiny.train(1, 6, "whole");
  const RunTrace buckets = tiny.train(2, 6, "buckets", {"mesh.dp_bucket_mb=0.001"});
  const RunTrace accumulated = tiny.train(2, 6, "micro", {"train.micro_batch=4"});
  check_close(buckets.losses, one.losses, 1e-6);
  check_close(accumulated.losses, one.losses, 1e-6);
}

TEST_CASE("two equal runs have the same bits", "[trainer]") {
  const TinyRun tiny("llama");
  const int ranks = GENERATE(1, 3);
  const RunTrace first = tiny.train(ranks, 5, "a" + std::to_string(ranks),
                                    {"train.global_batch=6", "train.micro_batch=2"});
  const RunTrace second = tiny.train(ranks, 5, "b" + std::to_string(ranks),
                                     {"train.global_batch=6", "train.micro_batch=2"});
  CHECK(first.losses == second.losses);
  CHECK(first.weights == second.weights);
}

TEST_CASE("a run that stopped and restarted at the same size has the same bits", "[trainer]") {
  const std::string precision = GENERATE("f32", "bf16");
  const std::string optimizer = GENERATE("adamw", "sgd");
  const TinyRun tiny("gpt2");
  const std::vector<std::string> options{"train.precision=\"" + precision + "\"",
                                         "optim.name=\"" + optimizer + "\"", "model.dropout=0.1"};
  const std::string tag = precision + optimizer;
  const RunTrace whole = tiny.train(2, 20, tag + "whole", options);
  const RunTrace first = tiny.train(2, 10, tag + "parts", options);
  const RunTrace second = tiny.train(2, 20, tag + "parts", options);
  REQUIRE(second.losses.size() == 10);
  std::vector<double> joined = first.losses;
  joined.insert(joined.end(), second.losses.begin(), second.losses.end());
  CHECK(joined == whole.losses);
  CHECK(second.weights == whole.weights);
}

TEST_CASE("a restart at another size has the same state and goes on with the next sample",
          "[trainer]") {
  const TinyRun tiny("llama");
  const RunTrace one = tiny.train(1, 12, "one");
  const RunTrace before = tiny.train(4, 6, "moved");
  for (const int ranks : {1, 2, 8}) {
    const std::string name = "moved_to_" + std::to_string(ranks);
    tiny.copy_checkpoints("moved", name);
    const RunTrace restored = tiny.train(ranks, 6, name);  // nothing left to train
    CHECK(restored.losses.empty());
    CHECK(restored.weights == before.weights);
    CHECK(restored.moments == before.moments);
    const RunTrace after = tiny.train(ranks, 12, name);
    check_close(after.losses, {one.losses.begin() + 6, one.losses.end()}, 1e-6);
  }
}

TEST_CASE("a checkpoint of any ZeRO stage has the bits of none, and goes on at any other",
          "[trainer]") {
  const std::string precision = GENERATE("f32", "bf16");
  const TinyRun tiny("gpt2");
  const auto train_with = [&](const std::string& name, int steps, int zero,
                              const std::string& more) {
    tiny.train(8, steps, name,
               {"train.precision=\"" + precision + "\"", "mesh.pp=2", "mesh.tp=2",
                "mesh.dp_reduce=\"step\"", "mesh.schedule=\"zb-h1\"",
                "mesh.zero=" + std::to_string(zero), more});
  };
  const std::string tag = precision;
  train_with(tag + "plain", 8, 0, "log.trace=false");
  const std::string expected = tiny.identity(tag + "plain");
  for (const int zero : {1, 2, 3}) {
    CAPTURE(zero, precision);
    const std::string name = tag + std::to_string(zero);
    train_with(name, 4, zero, "mesh.zero3_keep=\"micro_batch\"");
    train_with(name, 8, (zero + 2) % 4, "mesh.zero3_keep=\"step\"");  // 3, 0, 1
    CHECK(tiny.identity(name) == expected);
  }
}

TEST_CASE("ranks without samples left evaluate along, for the weights they share", "[trainer]") {
  const TinyRun tiny("gpt2");
  // 26 samples among eight ranks; blocks take turns with their buffers.
  const std::vector<std::string> options{"model.layers=4"};
  const RunTrace one = tiny.train(1, 5, "one", options);
  for (const int ranks : {4, 8}) {
    CAPTURE(ranks);
    std::vector<std::string> sharded = options;
    sharded.emplace_back("mesh.zero=3");
    const RunTrace several = tiny.train(ranks, 5, "several" + std::to_string(ranks), sharded);
    REQUIRE(several.evaluations.size() == 1);
    check_close(several.evaluations, one.evaluations, 1e-6);
  }
}

TEST_CASE("ranks with a smaller last batch gather tiles in step", "[trainer]") {
  const TinyRun tiny("gpt2");
  // 26 samples in rounds of eight: two for the first rank of the last round, and one for others to
  // run along with. A chunk of the head is a third of a batch.
  const std::vector<std::string> options{"train.micro_batch=2", "train.head_chunks=3"};
  const RunTrace one = tiny.train(1, 5, "one", options);
  std::vector<std::string> tiled = options;
  tiled.insert(tiled.end(), {"mesh.zero=3", "mesh.tile_linear=4"});
  const RunTrace several = tiny.train(4, 5, "several", tiled);
  REQUIRE(several.evaluations.size() == 1);
  check_close(several.evaluations, one.evaluations, 1e-6);
}

TEST_CASE("weights that overflow where they are rounded are not saved", "[trainer]") {
  const TinyRun tiny("gpt2");
  const std::vector<std::string> options{"train.precision=\"f16\"", "optim.lr=1e6",
                                         "optim.warmup_steps=0",    "train.eval_every_steps=0",
                                         "data.validation=[]",      "optim.clip_norm=0"};
  const std::string offload = GENERATE("none", "cpu");
  std::vector<std::string> all = options;
  all.push_back("offload.optimizer=\"" + offload + "\"");
  try {
    tiny.train(2, 1, offload, all);
    FAIL("it was saved");
  } catch (const fourfold::UserError& error) {
    CHECK(error.code() == ExitCode::data_corrupt);
    CHECK_THAT(error.what(), StartsWith("weights are not finite after step 1"));
  }
}

TEST_CASE("a checkpoint of a run in tiles goes on without, and the other way round", "[trainer]") {
  const std::string precision = GENERATE("f32", "bf16");
  const TinyRun tiny("llama");
  const auto train_with = [&](const std::string& name, int steps, int zero, int tiles) {
    return tiny
        .train(8, steps, name,
               {"train.precision=\"" + precision + "\"", "mesh.pp=2", "mesh.tp=2",
                "mesh.dp_reduce=\"step\"", "mesh.zero=" + std::to_string(zero),
                "mesh.tile_linear=" + std::to_string(tiles)})
        .losses;
  };
  const std::vector<double> plain = train_with("plain", 8, 0, 1);
  const double tolerance = precision == "f32" ? 1e-5 : 1e-2;
  train_with("tiled", 4, 3, 3);
  std::string expected;
  for (const int zero : {0, 1, 3}) {  // whole again: from the same bits to the same bits
    const std::string name = "from_tiles" + std::to_string(zero);
    tiny.copy_checkpoints("tiled", name);
    check_close(train_with(name, 8, zero, 1), {plain.begin() + 4, plain.end()}, tolerance);
    expected = expected.empty() ? tiny.identity(name) : expected;
    CHECK(tiny.identity(name) == expected);
  }
  check_close(train_with("tiled", 8, 3, 7), {plain.begin() + 4, plain.end()}, tolerance);
  train_with("untiled", 4, 3, 1);
  check_close(train_with("untiled", 8, 3, 2), {plain.begin() + 4, plain.end()}, tolerance);
}

TEST_CASE("updates that need not wait for the norm have the same bits", "[trainer]") {
  const TinyRun tiny("llama");
  const std::vector<std::string> options{"mesh.pp=2", "mesh.zero=3", "mesh.dp_bucket_mb=0.001"};
  const auto with = [&](const std::string& clip_norm) {
    std::vector<std::string> all = options;
    all.push_back("optim.clip_norm=" + clip_norm);
    return tiny.train(4, 5, "clip" + clip_norm, all);
  };
  const RunTrace waits = with("1e30");
  const RunTrace at_once = with("0");
  CHECK(at_once.losses == waits.losses);
  CHECK(at_once.weights == waits.weights);
}

TEST_CASE("a group that does not divide the data plane is refused with one that does",
          "[trainer]") {
  const TinyRun tiny("llama");
  CHECK_THROWS_WITH(
      tiny.train(
          6, 1, "groups",
          {"train.global_batch=6", "train.micro_batch=1", "mesh.zero=1", "mesh.zero_group=4"}),
      Catch::Matchers::StartsWith("--set: mesh.zero_group = 4 does not divide mesh.dp "
                                  "= 6 x mesh.cp = 1") &&
          Catch::Matchers::ContainsSubstring("set it to 3"));
  CHECK_THROWS_WITH(
      tiny.train(8, 1, "replicas",
                 {"mesh.cp=2", "mesh.zero=1", "mesh.zero_group=4", "mesh.dp_mode=local"}),
      Catch::Matchers::ContainsSubstring("mesh.zero_group = 4 does not divide mesh.cp = 2 (with "
                                         "mesh.dp_mode = \"local\"") &&
          Catch::Matchers::ContainsSubstring("set it to 2"));
}

TEST_CASE("changing what a run means is refused on resuming, unless allowed by name", "[trainer]") {
  const TinyRun tiny("gpt2");
  tiny.train(1, 2, "changed");
  CHECK_THROWS_AS(tiny.train(1, 4, "changed", {"optim.lr=0.5"}), fourfold::UserError);
  CHECK_THROWS_AS(tiny.train(1, 4, "changed", {"model.hidden=48", "model.ffn=96"}),
                  fourfold::UserError);
  CHECK_NOTHROW(tiny.train(1, 4, "changed", {"optim.lr=0.002"}, {"optim.lr"}));
}

TEST_CASE("a loss that is not a number ends the run and is not saved", "[trainer]") {
  const TinyRun tiny("gpt2");
  try {
    tiny.train(2, 20, "diverged", {"optim.name=\"sgd\"", "optim.lr=1e30", "optim.clip_norm=0"});
    FAIL("nothing was thrown");
  } catch (const fourfold::UserError& error) {
    CHECK(error.code() == ExitCode::data_corrupt);
    CHECK(std::string(error.what()).find("diverged") != std::string::npos);
  }
}

TEST_CASE("weights that the last update lost are not saved", "[trainer]") {
  const TinyRun tiny("gpt2");
  const std::string tier = GENERATE("none", "cpu");
  CAPTURE(tier);
  const std::string offload = "offload.optimizer=" + tier;
  tiny.train(2, 4, "good", {offload});
  // The loss and the gradient of the step itself are those of good weights.
  const auto last_step = [&](const std::string& name, const std::string& validation) {
    tiny.train(2, name == "good" ? 5 : 1, name,
               {offload, "optim.lr=1e39", "checkpoint.keep_last=1", validation}, {"optim.lr"});
  };
  for (const std::string name : {"good", "lost"}) {
    for (const bool evaluates : {false, true}) {  // which would tell it first
      try {
        last_step(name, evaluates ? "train.eval_every_steps=1" : "data.validation=[]");
        FAIL("nothing was thrown");
      } catch (const fourfold::UserError& error) {
        CHECK(error.code() == ExitCode::data_corrupt);
        CHECK_THAT(error.what(),
                   StartsWith(evaluates ? "validation loss" : "weights are not finite after step"));
      }
    }
  }
  CHECK(std::filesystem::is_empty(tiny.checkpoints("lost")));
  const RunTrace again = tiny.train(2, 8, "good", {offload});
  CHECK(again.losses.size() == 4);  // from step 4
  CHECK(again.weights == tiny.train(2, 8, "whole", {offload}).weights);
}

TEST_CASE("a signal during set-up stops a run before its first step", "[trainer]") {
  const TinyRun tiny("gpt2");
  {
    const train::StopSignals signals;
    REQUIRE(::kill(::getpid(), SIGTERM) == 0);
    const RunTrace stopped = tiny.train(2, 8, "early");
    CHECK(stopped.result.code == ExitCode::stopped_saved);
    CHECK(stopped.result.reason == train::StopReason::termination);
    CHECK(stopped.result.progress.step == 0);
    CHECK(stopped.result.checkpoint.empty());
    CHECK(stopped.losses.empty());
    CHECK(std::filesystem::is_empty(tiny.checkpoints("early")));
  }
  const train::StopSignals fresh;
  CHECK(tiny.train(2, 8, "early").weights == tiny.train(2, 8, "unstopped").weights);
}

TEST_CASE("a SAVE file brings a checkpoint out of turn, and changes nothing else", "[trainer]") {
  const TinyRun tiny("gpt2");
  struct Way {
    std::string name;
    std::vector<std::string> options;
  };
  const std::vector<Way> ways = {
      {"plain", {}}, {"background", {"checkpoint.async=true"}}, {"pipeline", {"mesh.pp=2"}}};
  for (const Way& way : ways) {
    CAPTURE(way.name);
    std::vector<std::string> options = way.options;
    options.insert(options.end(), {"checkpoint.every_steps=0", "checkpoint.keep_last=0"});
    const RunTrace undisturbed = tiny.train(2, 8, way.name + "-undisturbed", options);
    std::filesystem::create_directories(tiny.folder() / way.name);
    const RunTrace saved = tiny.train_and_look(2, 8, way.name, options, [&](std::int64_t step) {
      if (step == 3) {
        std::ofstream(tiny.folder() / way.name / "SAVE") << "please\n";
      }
    });
    CHECK(saved.weights == undisturbed.weights);
    CHECK(saved.losses == undisturbed.losses);
    std::set<std::string> steps;
    for (const auto& entry : std::filesystem::directory_iterator(tiny.checkpoints(way.name))) {
      steps.insert(entry.path().filename());
    }
    CHECK(steps == std::set<std::string>{"LATEST", "step-000000003", "step-000000008"});
  }
}

TEST_CASE("what does not fit the mesh is told with its place in the run file", "[trainer]") {
  const TinyRun tiny("gpt2");
  const auto refusal = [&](int ranks, const std::vector<std::string>& overrides) {
    try {
      tiny.train(ranks, 1, "refused", overrides);
    } catch (const fourfold::UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(refusal(4, {"mesh.tp=4"}), StartsWith("--set: mesh.tp = 4 does not fit"));
  CHECK_THAT(refusal(3, {"mesh.cp=3", "train.global_batch=3"}),
             StartsWith("--set: mesh.cp = 3 does not fit model.context = 16"));
  CHECK_THAT(refusal(2, {"mesh.pp=2", "mesh.schedule=one"}),
             StartsWith("--set: mesh.schedule = \"one\" is neither") ||
                 StartsWith("rank 0: --set: mesh.schedule = \"one\" is neither"));
}

TEST_CASE("a STOP file ends the run with a checkpoint, and it goes on later", "[trainer]") {
  const TinyRun tiny("gpt2");
  const RunTrace whole = tiny.train(2, 8, "unstopped");
  const RunTrace stopped = tiny.train_to_stop(2, 8, "stopped", 3);
  CHECK(stopped.result.code == ExitCode::stopped_saved);
  CHECK(stopped.result.progress.step == 3);
  // While it lies there no step is made, and nothing is lost.
  const RunTrace held = tiny.train(2, 8, "stopped");
  CHECK(held.result.code == ExitCode::stopped_saved);
  CHECK(held.result.progress.step == 3);
  CHECK(held.result.checkpoint == stopped.result.checkpoint);
  CHECK(held.losses.empty());
  tiny.withdraw_stop("stopped");
  const RunTrace rest = tiny.train(2, 8, "stopped");
  CHECK(rest.result.code == ExitCode::finished);
  CHECK(rest.weights == whole.weights);
}
