// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Whole runs with context parallelism against the same run on one rank.
#include "run/tiny_run.hpp"
#include "shared_arena.hpp"
#include "worst_difference.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/comm/thread_group.hpp>
#include <fourfold/train/step_runner.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <string>
#include <vector>

using fourfold::test::joined;
using fourfold::test::Options;
using fourfold::test::RunTrace;
using fourfold::test::TinyRun;
using fourfold::test::worst_difference;
using fourfold::test::worst_relative;

namespace {

struct Mesh {
  int ranks;
  Options options;
};

const std::vector<Mesh> meshes{{2, {"mesh.cp=2"}},
                               {4, {"mesh.cp=4"}},
                               {4, {"mesh.cp=2"}},  // and dp = 2
                               {4, {"mesh.cp=2", "mesh.tp=2"}},
                               {4, {"mesh.cp=2", "mesh.tp=2", "mesh.sequence_parallel=false"}},
                               {8, {"mesh.cp=2", "mesh.tp=2"}}};

/// Heads enough for all meshes. llama: four query heads share one key/value head, so with ulysses
/// ranks share them too. The vocabulary of 53 does not divide, the data end in a ragged sample.
Options model_of(const std::string& family) {
  return family == "llama" ? Options{"model.heads=8", "model.kv_heads=2"}
                           : Options{"model.heads=8"};
}

double largest(const std::vector<float>& a) {
  return worst_difference(a, std::vector<float>(a.size(), 0.0F));
}

}  // namespace

TEST_CASE("the first gradients of context-parallel ranks are those of one rank",
          "[context_parallel]") {
  const std::string family = GENERATE("gpt2", "llama");
  const std::string mode = GENERATE("ring", "ulysses", "allgather");
  const TinyRun tiny(family);
  // After one step the momentum of plain SGD is the gradient.
  const Options options = joined(
      model_of(family), {"mesh.context_mode=" + mode, "model.dropout=0.1", "train.micro_batch=2",
                         "optim.name=sgd", "optim.clip_norm=0", "optim.weight_decay=0"});
  const RunTrace one = tiny.train(1, 1, "one", options);
  REQUIRE(largest(one.moments) > 1e-3);
  for (std::size_t i = 0; i < meshes.size(); ++i) {
    const Mesh& mesh = meshes[i];
    const std::string name = "mesh" + std::to_string(i);
    CAPTURE(family, mode, mesh.ranks, mesh.options);
    tiny.train(mesh.ranks, 1, name, joined(options, mesh.options));
    const RunTrace restored = tiny.train(1, 1, name, options);
    CHECK(worst_difference(restored.moments, one.moments) <= 1e-5 * largest(one.moments));
  }
}

TEST_CASE("bf16 runs stay beside one rank however long the ring is", "[context_parallel]") {
  const std::string mode = GENERATE("ring", "ulysses", "allgather");
  const TinyRun tiny("llama");
  const Options options =
      joined(model_of("llama"), {"mesh.context_mode=" + mode, "train.precision=bf16"});
  const RunTrace one = tiny.train(1, 6, "one", options);
  for (const int cp : {2, 4, 8}) {
    CAPTURE(mode, cp);
    const RunTrace cut = tiny.train(cp, 6, "cp" + std::to_string(cp),
                                    joined(options, {"mesh.cp=" + std::to_string(cp)}));
    CHECK(worst_relative(cut.losses, one.losses) <= 5e-4);
  }
}

TEST_CASE("a run moves between context-parallel meshes without losing a bit",
          "[context_parallel]") {
  const TinyRun tiny("llama");
  const Options options = model_of("llama");
  const RunTrace before = tiny.train(4, 4, "moved", joined(options, {"mesh.cp=2", "mesh.tp=2"}));
  const RunTrace whole = tiny.train(1, 8, "whole", options);
  CHECK(before.losses.size() == 4);
  // Restored on other meshes with nothing left to train: the same state.
  const RunTrace on_one = tiny.train(1, 4, "moved", options);
  const RunTrace on_four =
      tiny.train(4, 4, "moved", joined(options, {"mesh.cp=4", "mesh.context_mode=ulysses"}));
  CHECK(on_four.weights == on_one.weights);
  CHECK(on_four.moments == on_one.moments);
  tiny.train(4, 8, "moved", joined(options, {"mesh.cp=2", "mesh.context_mode=allgather"}));
  const RunTrace after = tiny.train(2, 8, "moved", options);
  CHECK(after.losses.empty());
  CHECK(worst_difference(after.weights, whole.weights) <= 2e-4);
}

TEST_CASE("activations take 1/cp of the memory", "[context_parallel]") {
  const TinyRun tiny(GENERATE("gpt2", "llama"));
  const auto bytes = [&](int cp, fourfold::device::MemoryUse use) {
    const auto effective = tiny.config(1, "memory", {"mesh.cp=" + std::to_string(cp)});
    std::size_t taken = 0;
    fourfold::comm::run_device_ranks(cp, [&](fourfold::comm::Communicator& world) {
      fourfold::comm::Mesh mesh({.cp = cp}, world);
      fourfold::harness::SharedArena arena;
      const auto run = fourfold::train::resolve_run(effective, mesh.shape());
      const fourfold::train::StepRunner runner(run, mesh, arena);
      if (world.rank() == cp - 1) {
        taken = arena.bytes(use);
      }
    });
    return taken;
  };
  using enum fourfold::device::MemoryUse;
  CHECK(bytes(1, communication) == 0);
  for (const int cp : {2, 4, 8}) {
    CHECK(bytes(cp, activations) * static_cast<std::size_t>(cp) == bytes(1, activations));
    CHECK(bytes(cp, communication) > 0);
    CHECK(bytes(cp, weights) == bytes(1, weights));
  }
}

TEST_CASE("what context parallelism cannot cut is refused", "[context_parallel]") {
  const TinyRun tiny("llama");
  const auto refusal = [&](int ranks, const Options& options) -> std::string {
    try {
      tiny.train(ranks, 1, "refused", options);
    } catch (const fourfold::UserError& error) {
      CHECK(error.code() == fourfold::ExitCode::config);
      return error.what();
    }
    return "";
  };
  using Catch::Matchers::ContainsSubstring;
  CHECK_THAT(refusal(3, {"mesh.cp=3"}),
             ContainsSubstring("mesh.cp = 3 does not fit model.context = 16") &&
                 ContainsSubstring("set mesh.cp to 2 or 4, or model.context to 12 or 18"));
  CHECK_THAT(refusal(4, {"mesh.cp=4", "mesh.context_mode=ulysses"}),
             ContainsSubstring("mesh.cp = 4 does not fit model.heads = 2") &&
                 ContainsSubstring("set mesh.cp to 2"));
}
