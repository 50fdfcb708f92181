// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// State that is copied from a device beside the next step is that of before it. The stream that
/// copies is as late as it may be, so whatever does not wait for it is seen here.
#include "run/tiny_run.hpp"

#include <fourfold/comm/thread_group.hpp>
#include <fourfold/data/dataset.hpp>
#include <fourfold/device/device.hpp>
#include <fourfold/train/batch_loader.hpp>
#include <fourfold/train/resolved_run.hpp>
#include <fourfold/train/step_runner.hpp>
#include <fourfold/train/training_state.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstddef>
#include <string>
#include <thread>
#include <vector>

using namespace fourfold;
using fourfold::test::TinyRun;

namespace {

enum class Fetch : std::uint8_t { now, beside };

/// What a rank would save after step 2, and the losses of four steps.
struct Fetched {
  std::vector<std::vector<std::byte>> pieces;
  std::vector<double> losses;
  friend bool operator==(const Fetched&, const Fetched&) = default;
};

std::vector<std::vector<std::byte>> bytes_of(const train::TrainingState& state) {
  std::vector<std::vector<std::byte>> all;
  for (const io::Piece& piece : state.pieces()) {
    const auto* const first = static_cast<const std::byte*>(piece.data.data());
    all.emplace_back(first, first + piece.data.bytes());
  }
  return all;
}

Fetched run(const runfile::RunConfig& config, comm::Mesh& mesh, Fetch fetch) {
  const device::Stream stream;
  device::Arena arena;
  const data::TokenDataset dataset(
      config.data.train, train::dataset_options(config, data::TokenDataset::Order::shuffled));
  const train::ResolvedRun resolved = train::resolve_run({.config = config}, mesh.shape());
  train::StepRunner runner(resolved, mesh, arena);
  train::BatchLoader loader(dataset, resolved.batches, mesh.coordinate().dp,
                            train::held_tokens(mesh, config.model.context), arena);
  train::TrainingState state(resolved, runner.share(), runner.optimizer(), mesh,
                             runner.error_pieces(), runner.outer_optimizer().moments());
  runner.initialise(7, stream);
  Fetched result;
  for (int step = 0; step < 4; ++step) {
    runner.run(step, loader.load(step, step * config.train.global_batch, stream), 1e-2, stream);
    result.losses.push_back(runner.outcome(stream).loss);
    if (step == 1) {
      runner.prepare_save(stream);
      if (fetch == Fetch::now) {
        state.fetch(stream);
        result.pieces = bytes_of(state);
      } else {
        runner.keep_state_until(state.begin_fetch(stream));
      }
    }
    if (step == 2 && fetch == Fetch::beside) {
      while (!state.has_arrived()) {
        std::this_thread::yield();
      }
      result.pieces = bytes_of(state);
    }
  }
  stream.ref().synchronize();
  return result;
}

std::vector<Fetched> run(const runfile::RunConfig& config, int ranks, Fetch fetch) {
  std::vector<Fetched> all(static_cast<std::size_t>(ranks));
  comm::run_device_ranks(ranks, [&](comm::Communicator& world) {
    comm::Mesh mesh(comm::resolve_mesh(config.mesh.shape, world.size()), world);
    all[static_cast<std::size_t>(world.rank())] = run(config, mesh, fetch);
  });
  return all;
}

}  // namespace

TEST_CASE("state fetched beside the next step is that of before it", "[state_fetch]") {
  if (!device::has_own_memory) {
    SUCCEED("the host's state is where it is");
    return;
  }
  const TinyRun tiny("gpt2");
  struct Way {
    std::string name;
    int ranks;
    std::vector<std::string> options;
  };
  const std::vector<Way> ways = {
      {"one", 1, {}},
      {"rounded", 1, {"train.precision=bf16"}},
      {"no norm", 1, {"optim.clip_norm=0", "optim.name=sgd"}},
      {"replicas", 2, {}},
      {"zero 1", 2, {"mesh.zero=1"}},
      {"zero 2", 2, {"mesh.zero=2", "train.precision=bf16"}},
      {"zero 3", 2, {"mesh.zero=3"}},
      {"stages", 2, {"mesh.pp=2"}},
      {"tensors", 2, {"mesh.tp=2"}},
      {"int8", 2, {"mesh.dp_compress=int8"}},
      {"low rank", 2, {"mesh.dp_compress=lowrank:2"}},
      {"scaled", 2, {"mesh.dp_compress=int8", "train.precision=f16"}},
      {"nesterov", 2, {"mesh.dp_mode=local", "mesh.average_every=3", "optim.outer=nesterov"}},
  };
  for (const Way& way : ways) {
    CAPTURE(way.name);
    const runfile::RunConfig config = tiny.config(4, "none", way.options).config;
    const std::vector<Fetched> at_once = run(config, way.ranks, Fetch::now);
    REQUIRE(!at_once.front().pieces.empty());
    CHECK(run(config, way.ranks, Fetch::beside) == at_once);
  }
}
