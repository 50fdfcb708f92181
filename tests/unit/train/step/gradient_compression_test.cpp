// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// Training whose gradients travel compressed: beside the run that does not compress, over restarts,
// and what checkpoints keep of it.
#include "run/tiny_run.hpp"
#include "shared_arena.hpp"
#include "verify/mesh_traces.hpp"

#include <fourfold/comm/thread_group.hpp>
#include <fourfold/io/checkpoint_find.hpp>
#include <fourfold/io/checkpoint_store.hpp>
#include <fourfold/train/batch_loader.hpp>
#include <fourfold/train/resolved_run.hpp>
#include <fourfold/train/saved_model.hpp>
#include <fourfold/train/state_layouts.hpp>
#include <fourfold/train/step_runner.hpp>
#include <fourfold/train/training_state.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

using Catch::Matchers::WithinRel;
using namespace fourfold;
using comm::MeshShape;
using test::joined;
using test::mesh_options;
using test::Options;
using test::RunTrace;
using test::TinyRun;

namespace {

Options compressed(const std::string& kind, const Options& more = {}) {
  return joined({"mesh.dp_compress=\"" + kind + "\"", "mesh.dp_bucket_mb=0.005"}, more);
}

/// A mesh of more than one data-parallel rank, and what else is special about the run.
struct Case {
  MeshShape mesh;
  Options more;
};

const std::vector<Case> cases{
    {{.dp = 2}, {}},
    {{.dp = 8}, {"mesh.zero=1"}},
    {{.dp = 2, .cp = 2, .tp = 2}, {"mesh.zero=1"}},
    {{.pp = 2, .dp = 4}, {"mesh.zero=1", "mesh.zero_group=2"}},
    {{.pp = 2, .dp = 2, .tp = 2}, {"mesh.schedule=zb-v", "mesh.stage_layers=[0,1,1,0]"}},
    {{.cp = 2}, {"mesh.zero=3", "mesh.dp_reduce=step"}},
};

/// The newest checkpoint's state, which is the same for equal bits on any mesh.
std::string identity_of(const std::filesystem::path& checkpoints) {
  std::string identity;
  comm::run_device_ranks(1, [&](comm::Communicator& world) {
    identity = io::find_checkpoint(checkpoints, world.host()).identity();
  });
  return identity;
}

bool has_errors(const std::filesystem::path& checkpoints) {
  bool found = false;
  comm::run_device_ranks(1, [&](comm::Communicator& world) {
    const io::Checkpoint checkpoint = io::find_checkpoint(checkpoints, world.host());
    found = std::ranges::any_of(checkpoint.tensors(), [](const io::StoredTensor& tensor) {
      return tensor.id.state == train::error_feedback;
    });
  });
  return found;
}

}  // namespace

TEST_CASE("key/value heads that ranks share stay the same bits where blocks are cut unevenly",
          "[gradient_compression]") {
  const std::string kind = GENERATE("bf16", "int8", "lowrank:2");
  const int zero = GENERATE(0, 1);
  const int ffn = GENERATE(64, 66);  // over 4 ranks: alike, and not
  const TinyRun tiny("llama");
  const MeshShape mesh{.dp = 2, .tp = 4};
  const Options all = joined(
      mesh_options(mesh),
      compressed(kind, {"model.heads=4", "model.kv_heads=2", fmt::format("model.ffn={}", ffn),
                        fmt::format("mesh.zero={}", zero)}));
  const test::MeshTrace trace = test::trace_mesh(tiny.config(4, "none", all).config, mesh, 4);
  CAPTURE(kind, zero, ffn);
  CHECK(trace.disagreements == std::vector<std::string>{});
}

TEST_CASE("a compressed run that stopped and restarted has the same bits",
          "[gradient_compression]") {
  const std::string kind = GENERATE("bf16", "int8", "lowrank:2");
  const std::string precision = GENERATE("f32", "f16");
  const TinyRun tiny("gpt2");
  const Case each = GENERATE(cases[0], cases[2], cases[3], cases[4]);
  const auto ranks = static_cast<int>(each.mesh.ranks());
  // f16: the first steps overflow, and do so again after the restart's doublings.
  const Options options =
      joined(compressed(kind, joined(mesh_options(each.mesh), each.more)),
             {"train.precision=" + precision, "train.loss_scale_initial=67108864",
              "train.loss_scale_window=1"});
  CAPTURE(kind, precision, each.mesh.str());
  const int steps = precision == "f16" ? 24 : 8;  // a save every 4 steps
  const RunTrace whole = tiny.train(ranks, steps, "whole", options);
  tiny.train(ranks, steps / 2, "parts", options);
  const RunTrace second = tiny.train(ranks, steps, "parts", options);
  REQUIRE(second.losses.size() == static_cast<std::size_t>(steps / 2));
  CHECK(second.losses == std::vector<double>(whole.losses.begin() + steps / 2, whole.losses.end()));
  CHECK(second.weights == whole.weights);
  CHECK(identity_of(tiny.checkpoints("whole")) == identity_of(tiny.checkpoints("parts")));
  CHECK(has_errors(tiny.checkpoints("whole")));
  if (precision == "f16") {
    CHECK(whole.skipped_steps.back() > 3);
    CHECK(whole.skipped_steps.back() < steps - 3);
  }
}

namespace {

/// One rank's run of a few steps between two checkpoints.
struct Passage {
  std::filesystem::path from;  ///< empty: the initial weights
  std::filesystem::path to;
  int steps = 0;
};

void pass(const runfile::RunConfig& config, comm::Mesh& mesh, const Passage& passage) {
  const device::Stream stream;
  fourfold::harness::SharedArena arena;
  const data::TokenDataset dataset(
      config.data.train, train::dataset_options(config, data::TokenDataset::Order::shuffled));
  const train::ResolvedRun run = train::resolve_run({.config = config}, mesh.shape());
  train::StepRunner runner(run, mesh, arena);
  train::BatchLoader loader(dataset, run.batches, mesh.coordinate().dp,
                            train::held_tokens(mesh, config.model.context), arena);
  const train::TrainingState state(run, runner.share(), runner.optimizer(), mesh,
                                   runner.error_pieces());
  if (passage.from.empty()) {
    runner.initialise(7, stream);
  } else {
    io::CheckpointStore(passage.from).restore(state.wanted(), mesh.world().host());
    runner.update_weights_from_masters(stream);
  }
  for (int step = 0; step < passage.steps; ++step) {
    runner.run(step, loader.load(step, step * config.train.global_batch, stream), 1e-3, stream);
    runner.outcome(stream);
  }
  runner.prepare_save(stream);
  stream.ref().synchronize();
  io::CheckpointStore(passage.to)
      .save({.step = 3,
             .mesh = mesh.shape(),
             .scalars = {},
             .tensors = state.layouts(),
             .pieces = state.pieces()},
            mesh.world().host());
}

void pass(const TinyRun& tiny, const Case& each, const std::string& kind, const Passage& passage) {
  const Options options = compressed(kind, joined(mesh_options(each.mesh), each.more));
  const runfile::RunConfig config = tiny.config(3, "none", options).config;
  comm::run_device_ranks(static_cast<int>(each.mesh.ranks()), [&](comm::Communicator& world) {
    comm::Mesh mesh(each.mesh, world);
    pass(config, mesh, passage);
  });
}

}  // namespace

TEST_CASE("what is left out moves to any mesh with every bit", "[gradient_compression]") {
  const std::string family = GENERATE("gpt2", "llama");
  const std::string kind = GENERATE("int8", "lowrank:2");
  const TinyRun tiny(family);
  const std::filesystem::path folder = tiny.checkpoints("moved");
  pass(tiny, cases[4], kind, {{}, folder / "0", 3});
  REQUIRE(has_errors(folder / "0"));
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::filesystem::path next = folder / std::to_string(i + 1);
    CAPTURE(family, kind, cases[i].mesh.str());
    pass(tiny, cases[i], kind, {folder / std::to_string(i), next, 0});
    CHECK(identity_of(next) == identity_of(folder / "0"));
  }
}

TEST_CASE("a restart on another mesh goes on with what was left out", "[gradient_compression]") {
  const TinyRun tiny("gpt2");
  const RunTrace stays = tiny.train(4, 8, "stays", compressed("int8"));
  for (const Case& each : cases) {
    const std::string name = "moves_to_" + each.mesh.str();
    CAPTURE(name);
    tiny.train(4, 4, name, compressed("int8"));
    const RunTrace moved =
        tiny.train(static_cast<int>(each.mesh.ranks()), 8, name,
                   compressed("int8", joined(mesh_options(each.mesh), each.more)));
    REQUIRE(moved.losses.size() == 4);
    for (std::size_t i = 0; i < 4; ++i) {
      CHECK_THAT(moved.losses[i], WithinRel(stays.losses[4 + i], 0.01));
    }
    CHECK_THAT(moved.losses[0], WithinRel(stays.losses[4], 1e-6));  // before its first update
  }
}

TEST_CASE("compression can begin and end at a restart", "[gradient_compression]") {
  const TinyRun tiny("gpt2");
  const RunTrace plain = tiny.train(2, 8, "plain");
  tiny.train(2, 4, "begins");
  CHECK_FALSE(has_errors(tiny.checkpoints("begins")));
  const RunTrace begins = tiny.train(2, 8, "begins", compressed("bf16"));
  CHECK(has_errors(tiny.checkpoints("begins")));
  tiny.train(2, 4, "ends", compressed("bf16"));
  const RunTrace ends = tiny.train(2, 8, "ends");
  CHECK_FALSE(has_errors(tiny.checkpoints("ends")));
  const RunTrace alone = [&] {  // no other rank to send to
    tiny.train(2, 4, "alone", compressed("bf16"));
    return tiny.train(1, 8, "alone", compressed("bf16"));
  }();
  for (const RunTrace& trace : {begins, ends, alone}) {
    REQUIRE(trace.losses.size() == 4);
    for (std::size_t i = 0; i < 4; ++i) {
      CHECK_THAT(trace.losses[i], WithinRel(plain.losses[4 + i], 0.01));
    }
  }
}
