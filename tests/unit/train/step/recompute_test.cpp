// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Whole runs that make activations again against the same run that keeps them.
#include "run/tiny_run.hpp"

#include <fourfold/kernels/matmul_tuning.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

namespace kernels = fourfold::kernels;
using fourfold::test::joined;
using fourfold::test::Options;
using fourfold::test::RunTrace;
using fourfold::test::TinyRun;

TEST_CASE("train.recompute changes no bit of a run in 16 bits", "[recompute]") {
  const std::string family = GENERATE("gpt2", "llama");
  const std::string precision = GENERATE("bf16", "f16");
  const TinyRun tiny(family);
  const Options options{"model.layers=3", "model.dropout=0.1", "train.micro_batch=2",
                        "train.precision=" + precision};
  const RunTrace keeping = tiny.train(1, 4, "none", options);
  REQUIRE(keeping.losses.size() == 4);
  // On such a device gelu is a part of these products, and not the same when it is made without.
  const bool makes_gelu_in_products = family == "gpt2" && !kernels::matmul_library().empty();
  for (const std::string policy : {"full", "every:2", "selective"}) {
    if (policy == "selective" && makes_gelu_in_products) {
      continue;
    }
    CAPTURE(family, precision, policy);
    fourfold::test::check_same_bits(
        tiny.train(1, 4, policy, joined(options, {"train.recompute=" + policy})), keeping);
  }
}

TEST_CASE("a run goes on with another train.recompute, to the same bits", "[recompute]") {
  const TinyRun tiny("gpt2");
  const RunTrace whole = tiny.train(1, 6, "whole");
  tiny.train(1, 3, "changed", {"train.recompute=full"});
  const RunTrace rest = tiny.train(1, 6, "changed", {"train.recompute=selective"});
  REQUIRE(rest.losses.size() == 3);
  CHECK(rest.weights == whole.weights);
  CHECK(rest.moments == whole.moments);
}
