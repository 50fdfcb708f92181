// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// optim.stochastic_rounding: whole runs with it, beside others with it and without.
#include "run/tiny_run.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cmath>
#include <string>
#include <vector>

using fourfold::test::RunTrace;
using fourfold::test::TinyRun;

namespace {

using Overrides = std::vector<std::string>;

const Overrides at_random{"train.precision=\"bf16\"", "optim.stochastic_rounding=true"};

Overrides with(std::vector<std::string> more) {
  more.insert(more.end(), at_random.begin(), at_random.end());
  return more;
}

void check_same(const RunTrace& a, const RunTrace& b) {
  CHECK(a.losses == b.losses);
  CHECK(a.norms == b.norms);
  CHECK(a.evaluations == b.evaluations);
  CHECK(a.weights == b.weights);
}

}  // namespace

TEST_CASE("weights rounded at random are others, and train as well", "[stochastic_rounding]") {
  const TinyRun tiny(GENERATE("gpt2", "llama"));
  const RunTrace nearest = tiny.train(1, 12, "nearest", {at_random[0]});
  const RunTrace random = tiny.train(1, 12, "random", at_random);
  CHECK(random.losses.front() != nearest.losses.front());
  CHECK(std::fabs(random.losses.back() - nearest.losses.back()) <
        0.02 * std::fabs(nearest.losses.back()));
  check_same(random, tiny.train(1, 12, "again", at_random));
  CHECK(tiny.train(1, 12, "seed", with({"train.seed=77"})).losses != random.losses);
}

TEST_CASE("weights rounded at random have the same bits wherever the state is",
          "[stochastic_rounding]") {
  const TinyRun tiny(GENERATE("gpt2", "llama"));
  const std::string mesh = GENERATE("mesh.dp=2", "mesh.tp=2", "mesh.pp=2");
  CAPTURE(mesh);
  const std::string sums = "mesh.dp_reduce=\"step\"";  // zero = 3 adds in another order otherwise
  const RunTrace plain = tiny.train(2, 6, "plain", with({mesh, sums, "mesh.zero=0"}));
  for (const std::string more : {"mesh.zero=3", "offload.optimizer=\"cpu\""}) {
    CAPTURE(more);
    const RunTrace other = tiny.train(2, 6, "other" + more.substr(0, 4),
                                      with({mesh, sums, more, "offload.buffer_mb=0.1"}));
    CHECK(other.losses == plain.losses);
    CHECK(other.evaluations == plain.evaluations);
  }
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
