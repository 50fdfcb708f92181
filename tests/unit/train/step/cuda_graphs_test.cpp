// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Micro-batches that are launched as graphs make the losses and weights of those that are not.
#include "captured_log.hpp"
#include "run/tiny_run.hpp"
#include "runtime/scratch.hpp"

#include <fourfold/comm/thread_group.hpp>
#include <fourfold/data/dataset.hpp>
#include <fourfold/device/device.hpp>
#include <fourfold/train/batch_loader.hpp>
#include <fourfold/train/resolved_run.hpp>
#include <fourfold/train/step_runner.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <span>
#include <string>
#include <string_view>
#include <vector>

using namespace fourfold;
using fourfold::test::joined;
using fourfold::test::Options;
using fourfold::test::RunTrace;
using fourfold::test::TinyRun;
using parallel::GraphsOf;

namespace {

/// Steps of one rank whose batches claim so many targets: each its own factor of the gradients.
struct Steps {
  std::vector<double> losses;
  parallel::GraphCounts counts;
};
/// @param grows  after this step the kernels' scratch grows, and moves
Steps run(const runfile::RunConfig& config, std::span<const std::int64_t> targets,
          std::size_t grows = 0) {
  Steps result;
  comm::run_device_ranks(1, [&](comm::Communicator& world) {
    comm::Mesh mesh({}, world);
    const device::Stream stream;
    device::Arena arena;
    const data::TokenDataset dataset(
        config.data.train, train::dataset_options(config, data::TokenDataset::Order::shuffled));
    const train::ResolvedRun resolved = train::resolve_run({.config = config}, mesh.shape());
    train::StepRunner runner(resolved, mesh, arena);
    train::BatchLoader loader(dataset, resolved.batches, 0,
                              train::held_tokens(mesh, config.model.context), arena);
    runner.initialise(7, stream);
    for (std::size_t step = 0; step < targets.size(); ++step) {
      if (grows > 0 && step == grows) {
        constexpr std::size_t more_than_any_kernel = std::size_t{64} << 20;
        kernels::scratch(more_than_any_kernel, stream);
      }
      const auto number = static_cast<std::int64_t>(step);
      train::StepBatches batches = loader.load(number, number * config.train.global_batch, stream);
      batches.targets = targets[step];
      runner.run(number, batches, 1e-2, stream);
      result.losses.push_back(runner.outcome(stream).loss);
    }
    result.counts = runner.graph_counts();
  });
  return result;
}

}  // namespace

TEST_CASE("runs with graphs make the bits of runs without", "[cuda_graphs]") {
  const std::string family = GENERATE("gpt2", "llama");
  const TinyRun tiny(family);
  struct Way {
    std::string name;
    int ranks;
    Options options;
  };
  const std::vector<Way> ways = {
      {"one", 1, {}},
      {"two", 1, {"train.micro_batch=4"}},
      {"rounded", 1, {"train.precision=bf16", "train.micro_batch=2"}},
      {"scaled", 1, {"train.precision=f16", "train.loss_scale_window=2"}},
      {"chunks", 1, {"train.head_chunks=5", "train.recompute=full"}},
      {"again", 1, {"train.recompute=selective", "model.tie_embeddings=false"}},
      {"replicas", 2, {"train.micro_batch=2"}},
      {"zero 1", 2, {"mesh.zero=1"}},
      {"zero 2", 2, {"mesh.zero=2", "mesh.dp_reduce=step"}},
      {"int8", 2, {"mesh.dp_compress=int8"}},
      {"offloaded", 1, {"offload.optimizer=cpu"}},
      {"saved", 2, {"mesh.zero=1", "checkpoint.async=true", "checkpoint.every_steps=1"}},
  };
  for (const Way& way : ways) {
    CAPTURE(way.name);
    const RunTrace without = tiny.train(way.ranks, 7, way.name + "-without",
                                        joined(way.options, {"train.cuda_graphs=false"}));
    const harness::CapturedLog log;
    const RunTrace graphs =
        tiny.train(way.ranks, 7, way.name, joined(way.options, {"train.cuda_graphs=true"}));
    test::check_same_bits(graphs, without);
    CHECK((graphs.result.graphs.launches > 0) == device::has_own_memory);
    CHECK(without.result.graphs.launches == 0);
    CHECK(log.text().find("cannot be recorded") == std::string::npos);
  }
}

TEST_CASE("a graph is recorded in the second step and launched for all micro-batches but the last",
          "[cuda_graphs]") {
  if (!device::has_own_memory) {
    SUCCEED("there are no graphs");
    return;
  }
  const TinyRun tiny("gpt2");
  const auto config_with = [&](const Options& options) {
    return tiny.config(9, "none", options).config;
  };
  const std::vector<std::int64_t> same(5, 128);
  const Steps eight = run(config_with({}), same);
  CHECK(eight.counts.captures == 1);
  CHECK(eight.counts.launches == 4 * 7);
  const Steps two = run(config_with({"train.micro_batch=4"}), same);
  CHECK(two.counts.captures == 1);
  CHECK(two.counts.launches >= 3);  // scratch that grew after the first one moved
  CHECK(run(config_with({"train.micro_batch=8"}), same).counts.launches == 0);
  CHECK(run(config_with({"train.cuda_graphs=false"}), same).counts.launches == 0);
}

TEST_CASE("another factor of the gradients is another graph, if it comes again", "[cuda_graphs]") {
  if (!device::has_own_memory) {
    SUCCEED("there are no graphs");
    return;
  }
  const TinyRun tiny("llama");
  const runfile::RunConfig graphs = tiny.config(9, "none").config;
  const runfile::RunConfig none = tiny.config(9, "none", {"train.cuda_graphs=false"}).config;
  struct Case {
    std::vector<std::int64_t> targets;
    std::int64_t captures;
    std::int64_t steps_launched;
  };
  std::vector<std::int64_t> many;  // pairs: more graphs than are kept, and the first one again
  for (std::int64_t i = 0; i < 9; ++i) {
    many.insert(many.end(), 2, 100 + i);
  }
  many.insert(many.end(), {100, 100, 108});
  const std::vector<Case> cases = {
      {{128, 127, 126, 125, 124}, 0, 0},       // ragged, each step anew
      {{128, 128, 120, 128, 120, 128}, 1, 3},  // known from before
      {{128, 128, 120, 120, 128, 120}, 2, 4},  // both
      {many, 10, 11},
  };
  for (const Case& each : cases) {
    const Steps steps = run(graphs, each.targets);
    CHECK(steps.losses == run(none, each.targets).losses);
    CHECK(steps.counts.captures == each.captures);
    CHECK(steps.counts.launches == 7 * each.steps_launched);
  }
}

TEST_CASE("graphs are recorded anew where scratch has moved", "[cuda_graphs]") {
  if (!device::has_own_memory) {
    SUCCEED("there are no graphs");
    return;
  }
  const TinyRun tiny("gpt2");
  const runfile::RunConfig graphs = tiny.config(9, "none").config;
  const runfile::RunConfig none = tiny.config(9, "none", {"train.cuda_graphs=false"}).config;
  const std::vector<std::int64_t> same(6, 128);
  const Steps steps = run(graphs, same, 3);
  CHECK(steps.losses == run(none, same).losses);
  CHECK(steps.counts.captures == 2);
  CHECK(steps.counts.launches == 7 * 4);  // of steps 1, 2, 4 and 5
}

TEST_CASE("train.cuda_graphs is used where no rank talks within a micro-batch", "[cuda_graphs]") {
  const TinyRun tiny("gpt2");
  struct Case {
    comm::MeshShape mesh;
    Options options;
    GraphsOf graphs;
    std::string_view why_not;
  };
  const comm::MeshShape one;
  const std::vector<Case> cases = {
      {one, {}, GraphsOf::partial, ""},
      {one, {"model.context=1024", "train.micro_batch=4"}, GraphsOf::partial, ""},
      {one, {"model.context=1025", "train.micro_batch=4"}, GraphsOf::none, ""},
      {{.dp = 2}, {"mesh.zero=1"}, GraphsOf::partial_but_first, ""},
      {{.dp = 2}, {"mesh.zero=3"}, GraphsOf::none, "mesh.zero"},
      {{.dp = 2}, {"mesh.zero=2"}, GraphsOf::none, "mesh.dp_reduce"},
      {{.dp = 2}, {"mesh.zero=2", "mesh.dp_reduce=step"}, GraphsOf::partial_but_first, ""},
      {{.tp = 2}, {}, GraphsOf::none, "mesh"},
      {{.pp = 2}, {}, GraphsOf::none, "mesh"},
      {{.cp = 2}, {}, GraphsOf::none, "mesh"},
      {one, {"model.dropout=0.1"}, GraphsOf::none, "model.dropout"},
      {one, {"offload.activations=cpu"}, GraphsOf::none, "offload.activations"},
      {one, {"train.micro_batch=8"}, GraphsOf::none, "only micro-batch"},
      {{.dp = 8}, {}, GraphsOf::none, "only micro-batch"},
  };
  for (const Case& each : cases) {
    CAPTURE(each.mesh.str(), each.options);
    const auto on_mesh = [&](const std::string& wanted) {
      const Options options = joined(each.options, {"train.cuda_graphs=" + wanted});
      return train::resolve_run(tiny.config(1, "none", options), each.mesh);
    };
    CHECK(graphs_of(on_mesh("auto"), true) == each.graphs);
    CHECK(why_no_graphs(on_mesh("auto"), true).empty());
    CHECK(why_no_graphs(on_mesh("true"), true).find(each.why_not) != std::string_view::npos);
    CHECK((graphs_of(on_mesh("true"), true) == GraphsOf::none) != each.why_not.empty());
    CHECK(graphs_of(on_mesh("false"), true) == GraphsOf::none);
    CHECK(graphs_of(on_mesh("true"), false) == GraphsOf::none);
    CHECK(why_no_graphs(on_mesh("true"), false) == "this build computes on CPUs");
    CHECK(why_no_graphs(on_mesh("auto"), false).empty());
  }
}
