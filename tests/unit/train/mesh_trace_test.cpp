// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "tiny_run.hpp"

#include <fourfold/train/mesh_trace.hpp>

#include <catch2/catch_test_macros.hpp>

using namespace fourfold;

TEST_CASE("a trace is the training run itself", "[mesh_trace]") {
  const test::TinyRun tiny("llama");
  const std::vector<std::string> options{"mesh.tp=2", "model.dropout=0.1"};
  const test::RunTrace run = tiny.train(4, 6, "run", options);
  const train::MeshTrace trace =
      train::trace_mesh(tiny.config(6, "none", options).config, {.dp = 2, .tp = 2}, 6);
  CHECK(trace.disagreements.empty());
  REQUIRE(trace.steps.size() == 6);
  for (std::size_t step = 0; step < 6; ++step) {
    CHECK(trace.steps[step].loss == run.losses[step]);
    CHECK(trace.steps[step].grad_norm == run.norms[step]);
  }
  REQUIRE(trace.table.front().name == "embedding.token.weight");
  const std::size_t held = 27 * 32;  // of 53 rows rank 0 has 27
  const std::vector<float>& whole = trace.steps.back().weights.front();
  CHECK(whole.size() == 53 * 32);
  CHECK(std::equal(whole.begin(), whole.begin() + held, run.weights.begin()));
  CHECK(trace.initial_weights.front() != whole);
}
