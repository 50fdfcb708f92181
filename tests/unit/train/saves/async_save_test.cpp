// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Runs that save in the background save what runs save that stand still for it.
#include "captured_log.hpp"
#include "file_size_limit.hpp"
#include "run/tiny_run.hpp"
#include "scratch_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/comm/thread_group.hpp>
#include <fourfold/io/checkpoint_find.hpp>
#include <fourfold/io/checkpoint_store.hpp>
#include <fourfold/train/checkpoint_writer.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

using namespace fourfold;
using fourfold::test::RunTrace;
using fourfold::test::TinyRun;

namespace {

/// Identities of the steps of a run, all of which are read whole.
std::map<std::int64_t, std::string> steps_of(const TinyRun& tiny, const std::string& name) {
  std::map<std::int64_t, std::string> steps;
  fourfold::comm::run_ranks(1, [&](fourfold::comm::Communicator& self) {
    for (const std::filesystem::path& folder : fourfold::io::step_folders(tiny.checkpoints(name))) {
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
      {"summed", 2, {"mesh.zero=2", "train.precision=bf16"}},
      {"gathered", 2, {"mesh.zero=3"}},
      {"offloaded", 2, {"offload.optimizer=cpu"}},
      {"pipeline", 2, {"mesh.pp=2"}},
      {"compressed", 2, {"mesh.dp_compress=int8"}},
      {"twice", 2, {"mesh.zero=1", "checkpoint.async_copies=2"}},
      {"local", 2, {"mesh.dp_mode=local", "mesh.average_every=3", "optim.outer=nesterov"}},
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

TEST_CASE("steps of which two are written at a time appear in their order", "[async_save]") {
  const TinyRun tiny("gpt2");
  const fourfold::harness::CapturedLog log;
  const std::vector<std::string> options{"checkpoint.every_steps=1", "checkpoint.async=true",
                                         "checkpoint.async_copies=2"};
  std::vector<std::string> newest = options;
  newest.emplace_back("checkpoint.keep_last=1");
  tiny.train(4, 12, "newest", newest);
  const auto kept = steps_of(tiny, "newest");
  CHECK(kept.size() == 1);
  CHECK(kept.contains(12));
  std::vector<std::string> all = options;
  all.emplace_back("checkpoint.keep_last=0");
  tiny.train(4, 12, "all", all);
  CHECK(steps_of(tiny, "all").size() == 12);
  CHECK(log.text().find("also holds later steps") == std::string::npos);
}

TEST_CASE("with two copies a second checkpoint waits for nobody, and a third for the first",
          "[async_save]") {
  const fourfold::harness::ScratchFolder scratch;
  constexpr int ranks = 3;
  const std::vector<io::TensorLayout> layouts{
      io::TensorLayout::replicated({"w", io::TensorState::master}, DType::f32, {40, 50}, ranks)};
  runfile::CheckpointConfig config;
  config.async = true;
  config.async_copies = 2;
  config.when_busy = runfile::BusySave::skip;
  std::atomic<int> broken{0};
  const auto expect = [&](bool holds) { broken += holds ? 0 : 1; };
  comm::run_ranks(ranks, [&](comm::Communicator& world) {
    io::CheckpointStore store(scratch.path());
    std::vector<std::int64_t> committed;
    train::CheckpointWriter writer(
        config, store, layouts, world,
        [&](const telemetry::CheckpointRecord& done) { committed.push_back(done.step); });
    std::vector<float> values(2000);
    const auto save = [&](std::int64_t step) {
      std::ranges::fill(values, static_cast<float>(step));
      const io::Piece piece{
          layouts[0].id, Box::whole({40, 50}), {values.data(), DType::f32, {40, 50}}};
      writer.save([&](bool /*may_arrive*/) -> io::SaveRequest {
        return {step, {1, ranks, 1, 1}, {}, layouts, {&piece, 1}};
      });
    };
    save(1);
    expect(!writer.leaves_out(2));
    save(2);
    expect(writer.saves_under_way() == 2);
    expect(committed.empty());
    expect(writer.leaves_out(3));
    save(3);  // as the last one of a run is
    expect(committed == std::vector<std::int64_t>{1});
    expect(writer.saves_under_way() == 2);
    writer.finish();
    expect(committed == std::vector<std::int64_t>{1, 2, 3});
    expect(writer.saves_under_way() == 0);
  });
  CHECK(broken == 0);
  // What each holds is what there was when it began.
  comm::run_ranks(1, [&](comm::Communicator& self) {
    for (const std::int64_t step : {1, 2, 3}) {
      std::vector<float> values(2000);
      const io::WantedBox wanted{
          layouts[0].id, {40, 50}, Box::whole({40, 50}), {values.data(), DType::f32, {40, 50}}};
      const auto folder = io::step_folders(scratch.path()).at(static_cast<std::size_t>(step - 1));
      REQUIRE(io::load(io::open_checkpoint(folder, self), {&wanted, 1}, self).intact());
      CHECK(values == std::vector<float>(2000, static_cast<float>(step)));
    }
  });
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

TEST_CASE("a save that cannot be written ends the run and leaves those before it", "[async_save]") {
  const TinyRun tiny("gpt2");
  std::optional<harness::FileSizeLimit> limit;
  std::string told;
  try {
    tiny.train_and_look(2, 20, "full",
                        {"checkpoint.every_steps=3", "checkpoint.async=true", "mesh.zero=1"},
                        [&](std::int64_t step) {
                          if (step == 9) {  // that of step 6 is committed by then, or being so
                            limit.emplace(5000);
                          }
                        });
  } catch (const fourfold::UserError& error) {
    told = error.what();
  }
  limit.reset();
  CHECK(told.find("cannot be written") != std::string::npos);
  const auto steps = steps_of(tiny, "full");
  CHECK(steps.contains(3));
  CHECK(!steps.contains(9));
}
