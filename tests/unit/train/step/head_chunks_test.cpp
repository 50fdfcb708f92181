// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Whole runs with the head in chunks against the same run with it in one piece.
#include "run/tiny_run.hpp"
#include "worst_difference.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <string>

using fourfold::test::joined;
using fourfold::test::Options;
using fourfold::test::RunTrace;
using fourfold::test::TinyRun;
using fourfold::test::worst_relative;

TEST_CASE("f16 scales the loss of a head in chunks, and skips the same steps", "[head_chunks]") {
  const std::string family = GENERATE("gpt2", "llama");
  const int ranks = GENERATE(1, 2);
  const TinyRun tiny(family);
  Options options{"train.precision=f16", "train.loss_scale_initial=1073741824",
                  "train.micro_batch=2", "optim.lr=1e-3"};
  if (ranks == 2) {
    options.emplace_back("mesh.pp=2");
  }
  const RunTrace whole = tiny.train(ranks, 12, "whole", options);
  REQUIRE(whole.skipped_steps.back() > 0);
  REQUIRE(whole.skipped_steps.back() < 12);
  const RunTrace cut = tiny.train(ranks, 12, "cut", joined(options, {"train.head_chunks=5"}));
  CHECK(cut.loss_scales == whole.loss_scales);
  CHECK(cut.skipped_steps == whole.skipped_steps);
  CHECK(worst_relative(cut.losses, whole.losses) < 1e-3);
  CHECK(worst_relative(cut.evaluations, whole.evaluations) < 1e-3);
}

TEST_CASE("a run goes on with another train.head_chunks", "[head_chunks]") {
  const TinyRun tiny("gpt2");
  const RunTrace whole = tiny.train(1, 6, "whole");
  tiny.train(1, 3, "changed", {"train.head_chunks=3"});
  const RunTrace rest = tiny.train(1, 6, "changed", {"train.head_chunks=16"});
  REQUIRE(rest.losses.size() == 3);
  CHECK(worst_relative({rest.losses.back()}, {whole.losses.back()}) < 1e-4);
}
