// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "run/tiny_run.hpp"
#include "shared_arena.hpp"

#include <fourfold/comm/thread_group.hpp>
#include <fourfold/io/checkpoint_find.hpp>
#include <fourfold/train/evaluator.hpp>
#include <fourfold/train/saved_model.hpp>
#include <fourfold/train/step_runner.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>

#include <atomic>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace comm = fourfold::comm;
namespace data = fourfold::data;
namespace runfile = fourfold::runfile;
namespace train = fourfold::train;

TEST_CASE("a saved model evaluates as the run that saved it, on any number of ranks",
          "[saved_model]") {
  const fourfold::test::TinyRun tiny("llama");
  // In fewer chunks where a rank has fewer tokens.
  const std::string head_chunks = GENERATE("1", "5");
  const auto trace = tiny.train(2, 5, "saved", {"train.head_chunks=" + head_chunks});
  REQUIRE(trace.evaluations.size() == 1);
  // 26 samples: ragged shares, an empty one in the last round
  const std::vector<std::pair<int, int>> meshes{{1, 1}, {3, 1}, {4, 1}, {2, 2}, {4, 4}, {6, 2}};
  for (const auto& mesh_of : meshes) {
    const int ranks = mesh_of.first;
    const int cp = mesh_of.second;
    CAPTURE(ranks, cp);
    for (const std::int64_t micro_batch : {1, 5}) {
      std::atomic<int> right = 0;
      comm::run_device_ranks(ranks, [&](comm::Communicator& world) {
        comm::Mesh mesh(comm::resolve_mesh({.dp = 0, .cp = cp}, world.size()), world);
        const auto checkpoint = fourfold::io::find_checkpoint(tiny.checkpoints("saved"), world);
        train::SavedModel saved(checkpoint, micro_batch, mesh);
        const data::TokenDataset held_back({{tiny.held_back_tokens()}},
                                           {.context = saved.config().model.context,
                                            .vocab = saved.config().model.vocab,
                                            .order = data::TokenDataset::Order::sequential});
        train::Evaluator evaluator(held_back, mesh, micro_batch, 0, saved.arena());
        const train::Evaluation evaluation = evaluator.run(train::forward_pass(saved.stage()), {});
        const bool same = std::abs(evaluation.loss - trace.evaluations[0]) < 1e-6 * evaluation.loss;
        right += same && evaluation.targets == held_back.tokens() - 1 ? 1 : 0;
      });
      CHECK(right == ranks);
    }
  }
}

TEST_CASE("a saved model keeps the logits of all rows where they are asked for", "[saved_model]") {
  const fourfold::test::TinyRun tiny("gpt2");
  tiny.train(1, 1, "saved", {"train.head_chunks=5"});
  using Logits = train::SavedModel::Logits;
  comm::run_device_ranks(1, [&](comm::Communicator& world) {
    comm::Mesh mesh({}, world);
    const auto checkpoint = fourfold::io::find_checkpoint(tiny.checkpoints("saved"), world);
    train::SavedModel lean(checkpoint, 2, mesh);
    train::SavedModel whole(checkpoint, 2, mesh, Logits::whole);
    CHECK(whole.arena().bytes(fourfold::device::MemoryUse::activations) -
              lean.arena().bytes(fourfold::device::MemoryUse::activations) ==
          (32 - 7) * 53 * 4);
    CHECK(whole.stage().logits(0).dim(1) == 53);
  });
}

TEST_CASE("a saved model refuses a cp axis that cannot cut its context", "[saved_model]") {
  const fourfold::test::TinyRun tiny("llama");
  tiny.train(1, 1, "saved");
  CHECK_THROWS_AS(
      comm::run_device_ranks(3,
                             [&](comm::Communicator& world) {
                               comm::Mesh mesh({.cp = 3}, world);
                               train::SavedModel saved(
                                   fourfold::io::find_checkpoint(tiny.checkpoints("saved"), world),
                                   1, mesh);
                             }),
      fourfold::UserError);
}

TEST_CASE("what is no checkpoint is refused with the reason", "[saved_model]") {
  const fourfold::test::TinyRun tiny("gpt2");
  comm::run_device_ranks(1, [&](comm::Communicator& world) {
    CHECK_THROWS_AS(fourfold::io::find_checkpoint(tiny.checkpoints("never_made"), world),
                    fourfold::UserError);
  });
}

TEST_CASE("without any valid target nothing moves but the decay", "[step_runner]") {
  const fourfold::test::TinyRun tiny("gpt2");
  runfile::RunConfig config = tiny.config(1, "empty", {"train.global_batch=1"}).config;
  config.optim.weight_decay = 0;
  comm::run_device_ranks(1, [&](comm::Communicator& world) {
    comm::Mesh mesh({}, world);
    fourfold::harness::SharedArena arena;
    const train::ResolvedRun run = train::resolve_run({.config = config}, mesh.shape());
    train::StepRunner runner(run, mesh, arena);
    fourfold::model::initialise(runner.parameters(), 1, {});
    std::vector<std::int32_t> tokens(16, 3);
    std::vector<std::int32_t> targets(16, data::ignored_target);
    std::vector<std::int32_t> positions(16);
    std::vector<std::int64_t> samples(16, 0);
    const fourfold::model::Batch batch{
        .sequences = 1,
        .tokens = 16,
        .token_N = fourfold::ConstTensorView(tokens.data(), {16}),
        .target_N = fourfold::ConstTensorView(targets.data(), {16}),
        .position_N = fourfold::ConstTensorView(positions.data(), {16}),
        .sample_N = fourfold::ConstTensorView(samples.data(), {16})};
    const float first = runner.parameters().masters().as<float>()[0];
    runner.run(0, {std::span(&batch, 1), 0}, 0.1, {});
    const train::StepOutcome outcome = runner.outcome({});
    CHECK(outcome.loss == 0);
    CHECK(outcome.grad_norm == 0);
    CHECK(runner.parameters().masters().as<float>()[0] == first);
  });
}
