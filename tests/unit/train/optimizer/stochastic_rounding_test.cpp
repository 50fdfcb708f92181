// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// optim.stochastic_rounding: whole runs with it, beside others with it and without.
#include "run/tiny_run.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cmath>
#include <string>
#include <vector>

using fourfold::test::Options;
using fourfold::test::RunTrace;
using fourfold::test::TinyRun;

namespace {

const Options at_random{"train.precision=\"bf16\"", "optim.stochastic_rounding=true"};

Options with(const Options& more) {
  return fourfold::test::joined(more, at_random);
}

}  // namespace

TEST_CASE("weights rounded at random are others, and train as well", "[stochastic_rounding]") {
  const TinyRun tiny(GENERATE("gpt2", "llama"));
  const RunTrace nearest = tiny.train(1, 12, "nearest", {at_random[0]});
  const RunTrace random = tiny.train(1, 12, "random", at_random);
  CHECK(random.losses.front() != nearest.losses.front());
  CHECK(std::fabs(random.losses.back() - nearest.losses.back()) <
        0.02 * std::fabs(nearest.losses.back()));
  fourfold::test::check_same_bits(random, tiny.train(1, 12, "again", at_random));
  CHECK(tiny.train(1, 12, "seed", with({"train.seed=77"})).losses != random.losses);
}

// The first loss is that of weights made of the same masters, which no sum over ranks has touched.
TEST_CASE("the first weights are rounded alike on every mesh", "[stochastic_rounding]") {
  const TinyRun tiny("llama");
  const auto first_loss = [&](int ranks, const std::string& mesh) {
    return tiny.train(ranks, 1, mesh.substr(5, 2) + std::to_string(ranks), with({mesh})).losses[0];
  };
  const double nearest = tiny.train(1, 1, "nearest", {at_random[0]}).losses[0];
  const double one = first_loss(1, "mesh.dp=1");
  CHECK(std::fabs(first_loss(2, "mesh.pp=2") - one) < 1e-3 * std::fabs(nearest - one));
  CHECK(std::fabs(first_loss(2, "mesh.dp=2") - one) < 1e-3 * std::fabs(nearest - one));
}

TEST_CASE("a run whose weights are rounded at random goes on with the same bits",
          "[stochastic_rounding]") {
  const TinyRun tiny("gpt2");
  const std::string more = GENERATE("mesh.zero=1", "offload.optimizer=\"cpu\"");
  CAPTURE(more);
  const RunTrace whole = tiny.train(2, 8, "whole", with({more}));
  tiny.train(2, 4, "parts", with({more}));
  const RunTrace rest = tiny.train(2, 8, "parts", with({more}));
  CHECK(rest.losses == std::vector<double>(whole.losses.begin() + 4, whole.losses.end()));
  CHECK(rest.weights == whole.weights);
}
