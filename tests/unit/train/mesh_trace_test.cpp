// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "tiny_run.hpp"

#include <fourfold/device/device.hpp>
#include <fourfold/train/mesh_trace.hpp>

#include <catch2/catch_approx.hpp>
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

TEST_CASE("the way collectives of the host go changes no bits, but for the tree's rounding",
          "[mesh_trace]") {
  if (device::has_own_memory) {
    SKIP("collectives of a device have one way");
  }
  const test::TinyRun tiny("gpt2");
  const auto trace = [&](const std::string& way) {
    const std::vector<std::string> options{"mesh.host_collectives=" + way};
    return train::trace_mesh(tiny.config(3, "none", options).config, {.dp = 4}, 3);
  };
  const train::MeshTrace usual = trace("auto");
  for (const std::string way : {"direct", "ring"}) {
    const train::MeshTrace other = trace(way);
    CHECK(other.disagreements.empty());
    CHECK(other.steps.back().weights == usual.steps.back().weights);
    CHECK(other.steps.back().loss == usual.steps.back().loss);
  }
  const train::MeshTrace paired = trace("tree");
  CHECK(paired.disagreements.empty());
  CHECK(paired.steps.front().gradients != usual.steps.front().gradients);
  CHECK(paired.steps.back().loss == Catch::Approx(usual.steps.back().loss).epsilon(1e-5));
}
