// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Runs that save in the background save what runs save that stand still for it.
#include "captured_log.hpp"
#include "tiny_run.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/comm/thread_group.hpp>
#include <fourfold/io/checkpoint_store.hpp>
#include <fourfold/train/checkpoint_writer.hpp>

#include <catch2/catch_test_macros.hpp>

#include <filesystem>
#include <map>
#include <string>

using fourfold::ExitCode;
using fourfold::test::RunTrace;
using fourfold::test::TinyRun;

namespace {

/// Identities of the steps of a run, all of which are read whole.
std::map<std::int64_t, std::string> steps_of(const TinyRun& tiny, const std::string& name) {
  std::map<std::int64_t, std::string> steps;
  fourfold::comm::run_ranks(1, [&](fourfold::comm::Communicator& self) {
    const fourfold::io::CheckpointStore store(tiny.checkpoints(name));
    for (const std::filesystem::path& folder : store.step_folders()) {
      const fourfold::io::Checkpoint checkpoint = fourfold::io::open_checkpoint(folder, self);
      REQUIRE(fourfold::io::verify(checkpoint, self).empty());
      steps[checkpoint.step()] = checkpoint.identity();
    }
  });
  return steps;
}

}  // namespace

TEST_CASE("checkpoint.files deals ranks to files", "[async_save]") {
  fourfold::runfile::CheckpointConfig config;
  const std::vector<std::string> hosts{"a", "b", "a", "b"};
  const auto file_of_rank = [&](const char* files) {
    config.files = files;
    return fourfold::train::store_options(config, 4, hosts).plan.file_of_rank;
  };
  CHECK(file_of_rank("rank").empty());
  CHECK(file_of_rank("node") == std::vector<int>{0, 1, 0, 1});
  CHECK(file_of_rank("3") == std::vector<int>{0, 0, 1, 2});
  config.files = "node";
  CHECK(fourfold::train::store_options(config, 3, {}).plan.file_of_rank == std::vector<int>(3, 0));
}

TEST_CASE("checkpoints written in the background are those of a run that waits", "[async_save]") {
  const TinyRun tiny("gpt2");
  struct Way {
    std::string name;
    int ranks;
    std::vector<std::string> options;
  };
  const std::vector<Way> ways = {
      {"one", 1, {}},
      {"replicas", 2, {}},
      {"shares", 4, {"mesh.zero=1", "checkpoint.files=node"}},
      {"gathered", 2, {"mesh.zero=3"}},
      {"offloaded", 2, {"offload.optimizer=cpu"}},
      {"ahead", 2, {"mesh.pp=2", "optim.post_validation=true"}},
      {"compressed", 2, {"mesh.dp_compress=int8"}},
  };
  for (const Way& way : ways) {
    CAPTURE(way.name);
    std::vector<std::string> options = way.options;
    options.insert(options.end(), {"checkpoint.every_steps=2", "checkpoint.keep_last=0"});
    const RunTrace waits = tiny.train(way.ranks, 9, way.name + "-waits", options);
    options.emplace_back("checkpoint.async=true");
    const RunTrace goes_on = tiny.train(way.ranks, 9, way.name, options);
    CHECK(goes_on.losses == waits.losses);
    CHECK(goes_on.weights == waits.weights);
    CHECK(goes_on.result.checkpoint.filename() == "step-000000009");
    const auto steps = steps_of(tiny, way.name);
    CHECK(steps.size() == 5);
    CHECK(steps == steps_of(tiny, way.name + "-waits"));
  }
}

TEST_CASE("a step that is left out is said, and the last one never is", "[async_save]") {
  const TinyRun tiny("llama");
  const fourfold::harness::CapturedLog log;
  tiny.train(2, 12, "busy",
             {"checkpoint.every_steps=1", "checkpoint.keep_last=0", "checkpoint.async=true",
              "checkpoint.when_busy=skip"});
  const auto steps = steps_of(tiny, "busy");
  CHECK(steps.contains(12));
  std::size_t left_out = 0;
  const std::string text = log.text();
  for (std::size_t at = text.find("is left out"); at != std::string::npos;
       at = text.find("is left out", at + 1)) {
    ++left_out;
  }
  CHECK(steps.size() + left_out == 12);
  CHECK(left_out > 0);  // a save takes two boundaries at least
}

TEST_CASE("a run that diverges ends with what it had begun to save", "[async_save]") {
  const TinyRun tiny("gpt2");
  try {
    tiny.train(2, 20, "diverged",
               {"optim.name=sgd", "optim.lr=1e30", "optim.clip_norm=0", "optim.schedule=linear",
                "optim.warmup_steps=0", "checkpoint.every_steps=1", "checkpoint.async=true"});
    FAIL("nothing was thrown");
  } catch (const fourfold::UserError& error) {
    CHECK(error.code() == ExitCode::data_corrupt);
  }
  for (const auto& entry : std::filesystem::directory_iterator(tiny.checkpoints("diverged"))) {
    CHECK(!entry.path().filename().string().starts_with(".tmp"));  // whole, or not begun
  }
}

TEST_CASE("a stop waits for the save that is under way and makes its own", "[async_save]") {
  const TinyRun tiny("gpt2");
  const std::vector<std::string> options{"checkpoint.every_steps=3", "checkpoint.async=true",
                                         "checkpoint.keep_last=0"};
  const RunTrace stopped = tiny.train_to_stop(2, 20, "stopped", 4, options);
  CHECK(stopped.result.code == ExitCode::stopped_saved);
  CHECK(stopped.result.progress.step == 4);
  const auto steps = steps_of(tiny, "stopped");
  CHECK(steps.size() == 2);
  CHECK((steps.contains(3) && steps.contains(4)));
  tiny.withdraw_stop("stopped");
  CHECK(tiny.train(2, 20, "stopped", options).weights == tiny.train(2, 20, "whole").weights);
}
