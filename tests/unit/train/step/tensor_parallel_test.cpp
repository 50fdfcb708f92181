// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Whole runs with tensor parallelism against the same run on one rank.
#include "run/tiny_run.hpp"
#include "worst_difference.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

using fourfold::test::RunTrace;
using fourfold::test::TinyRun;
using fourfold::test::worst_difference;
using fourfold::test::worst_relative;

namespace {

std::vector<std::string> with(std::vector<std::string> options, const std::string& one) {
  options.push_back(one);
  return options;
}

}  // namespace

TEST_CASE("tensor-parallel ranks train as one rank does", "[tensor_parallel]") {
  // llama: two query heads share one key/value head; the vocabulary of 53 does not divide.
  const std::string family = GENERATE("gpt2", "llama");
  const std::string rows = GENERATE("true", "false");
  const TinyRun tiny(family);
  const std::vector<std::string> options{"mesh.sequence_parallel=" + rows, "model.dropout=0.1",
                                         "train.micro_batch=2", "optim.clip_norm=0.5"};
  const RunTrace one = tiny.train(1, 8, "one", options);
  for (const int ranks : {2, 4}) {
    CAPTURE(family, rows, ranks);
    const std::string name = "tp2_of_" + std::to_string(ranks);
    const RunTrace cut = tiny.train(ranks, 8, name, with(options, "mesh.tp=2"));
    CHECK(worst_relative(cut.losses, one.losses) <= 1e-5);
    CHECK(worst_relative(cut.evaluations, one.evaluations) <= 1e-5);
    CHECK(worst_relative(cut.norms, one.norms) <= 1e-4);

    // The checkpoint of any mesh, optimizer included, is that of one rank.
    const RunTrace restored = tiny.train(1, 8, name, options);
    CHECK(restored.losses.empty());
    CHECK(worst_difference(restored.weights, one.weights) <= 2e-4);
    CHECK(worst_difference(restored.moments, one.moments) <= 1e-4);
  }
}

TEST_CASE("a run moves between tensor-parallel meshes without losing a bit", "[tensor_parallel]") {
  const TinyRun tiny("llama");
  const RunTrace before = tiny.train(1, 4, "moved");
  std::filesystem::create_directories(tiny.checkpoints("copy").parent_path());
  std::filesystem::copy(tiny.checkpoints("moved"), tiny.checkpoints("copy"),
                        std::filesystem::copy_options::recursive);
  // Restored to tp 2, nothing left to train: a save there is the same state.
  const RunTrace cut = tiny.train(4, 4, "copy", {"mesh.tp=2"});
  CHECK(cut.losses.empty());
  tiny.train(2, 8, "moved", {"mesh.tp=2"});
  const RunTrace after = tiny.train(1, 8, "moved");
  const RunTrace whole = tiny.train(1, 8, "whole");
  CHECK(after.losses.empty());
  CHECK(worst_difference(after.weights, whole.weights) <= 2e-4);
}

TEST_CASE("two equal tensor-parallel runs have the same bits", "[tensor_parallel]") {
  const TinyRun tiny("llama");
  const RunTrace first = tiny.train(4, 5, "a", {"mesh.tp=2"});
  const RunTrace second = tiny.train(4, 5, "b", {"mesh.tp=2"});
  CHECK(first.losses == second.losses);
  CHECK(first.weights == second.weights);
}
