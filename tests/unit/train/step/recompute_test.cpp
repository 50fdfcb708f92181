// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Whole runs that make activations again against the same run that keeps them.
#include "run/tiny_run.hpp"

#include <fourfold/kernels/matmul_tuning.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

namespace kernels = fourfold::kernels;
using fourfold::test::RunTrace;
using fourfold::test::TinyRun;

namespace {

using Options = std::vector<std::string>;

Options with(Options options, const std::string& one) {
  options.push_back(one);
  return options;
}

void check_same_bits(const RunTrace& a, const RunTrace& b) {
  CHECK(a.losses == b.losses);
  CHECK(a.norms == b.norms);
  CHECK(a.evaluations == b.evaluations);
  CHECK(a.weights == b.weights);
  CHECK(a.moments == b.moments);
}

}  // namespace

TEST_CASE("train.recompute changes no bit of a run, on any mesh", "[recompute]") {
  const std::string family = GENERATE("gpt2", "llama");
  struct Mesh {
    int ranks;
    Options options;
  };
  const auto mesh = GENERATE(
      Mesh{1, {"train.precision=bf16"}}, Mesh{1, {"train.precision=f16"}}, Mesh{2, {"mesh.tp=2"}},
      Mesh{4, {"mesh.tp=2", "mesh.sequence_parallel=false"}}, Mesh{2, {"mesh.cp=2"}},
      Mesh{4, {"mesh.cp=2", "mesh.tp=2", "mesh.context_mode=allgather"}});
  const TinyRun tiny(family);
  Options options{"model.layers=3", "model.dropout=0.1", "train.micro_batch=2"};
  options.insert(options.end(), mesh.options.begin(), mesh.options.end());
  const RunTrace keeping = tiny.train(mesh.ranks, 4, "none", options);
  REQUIRE(keeping.losses.size() == 4);
  // On such a device gelu is a part of 16-bit products, and not the same when it is made without.
  const bool makes_gelu_in_products = family == "gpt2" && !kernels::product_library().empty() &&
                                      mesh.options.front().starts_with("train.precision");
  for (const std::string policy : {"full", "every:2", "selective"}) {
    if (policy == "selective" && makes_gelu_in_products) {
      continue;
    }
    CAPTURE(family, mesh.ranks, policy);
    check_same_bits(tiny.train(mesh.ranks, 4, policy, with(options, "train.recompute=" + policy)),
                    keeping);
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
