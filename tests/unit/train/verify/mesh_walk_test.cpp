// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "mesh_traces.hpp"
#include "plan/rank_tasks.hpp"
#include "run/tiny_run.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/device/device.hpp>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <atomic>

using namespace fourfold;

TEST_CASE("a trace is the training run itself", "[mesh_walk]") {
  const test::TinyRun tiny("llama");
  const std::vector<std::string> options{"mesh.tp=2", "model.dropout=0.1"};
  const test::RunTrace run = tiny.train(4, 6, "run", options);
  const test::MeshTrace trace =
      test::trace_mesh(tiny.config(6, "none", options).config, {.dp = 2, .tp = 2}, 6);
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
          "[mesh_walk]") {
  if (device::has_own_memory) {
    SKIP("collectives of a device have one way");
  }
  const test::TinyRun tiny("gpt2");
  const auto trace = [&](const std::string& way) {
    const std::vector<std::string> options{"mesh.host_collectives=" + way};
    return test::trace_mesh(tiny.config(3, "none", options).config, {.dp = 4}, 3);
  };
  const test::MeshTrace usual = trace("auto");
  for (const std::string way : {"direct", "ring"}) {
    const test::MeshTrace other = trace(way);
    CHECK(other.disagreements.empty());
    CHECK(other.steps.back().weights == usual.steps.back().weights);
    CHECK(other.steps.back().loss == usual.steps.back().loss);
  }
  const test::MeshTrace paired = trace("tree");
  CHECK(paired.disagreements.empty());
  CHECK(paired.steps.front().gradients != usual.steps.front().gradients);
  CHECK(paired.steps.back().loss == Catch::Approx(usual.steps.back().loss).epsilon(1e-5));
}

TEST_CASE("a step repeated from its start has its bits", "[mesh_walk]") {
  const test::TinyRun tiny("gpt2");
  const std::string precision = GENERATE("f32", "bf16", "f16");
  const std::string tier = GENERATE("none", "cpu");
  const std::vector<std::string> options{"model.dropout=0.1", "train.precision=" + precision,
                                         "train.loss_scale_initial=1073741824",  // f16 overflows
                                         "offload.optimizer=" + tier};
  const train::ResolvedRun run = train::resolve_run(tiny.config(8, "none", options), 2);
  train::MeshWalk walk(run);
  train::MeshWalk repeat(run);
  CAPTURE(precision, tier);
  for (int step = 0; step < 8; ++step) {
    train::StepStart start = walk.start();
    const train::StepTrace made = walk.step();
    const train::StepTrace repeated = repeat.step_from(start);
    CHECK(repeated.loss == made.loss);
    CHECK(repeated.loss_scale == made.loss_scale);
    CHECK(repeated.status == made.status);
    CHECK((made.status == train::StepStatus::skipped || repeated.gradients == made.gradients));
    start.weights[0][0] += 1;  // any other start is another step
    CHECK(start.weights != walk.start().weights);
  }
  CHECK(repeat.steps() == 8);
  CHECK(repeat.disagreements().empty());
}

TEST_CASE("another start is another step", "[mesh_walk]") {
  const test::TinyRun tiny("llama");
  const runfile::EffectiveConfig config = tiny.config(2, "none", {});
  train::MeshWalk walk(train::resolve_run(config, 1));
  train::MeshWalk repeat(train::resolve_run(config, {.tp = 2}));
  train::StepStart start = walk.start();
  start.weights.back()[3] += 0.5F;
  CHECK(repeat.step_from(start).loss != walk.step().loss);
  CHECK(repeat.start().weights.back()[3] != walk.start().weights.back()[3]);
}

TEST_CASE("what a rank throws comes out, and no thread is left waiting", "[mesh_walk]") {
  const test::TinyRun tiny("gpt2");
  train::ResolvedRun run = train::resolve_run(tiny.config(2, "none", {}), 2);
  run.config.data.train = {(tiny.folder() / "nowhere").string()};
  CHECK_THROWS_AS(train::MeshWalk(run), UserError);

  train::RankTasks<int> tasks(3, [](comm::Communicator& world) { return world.rank(); });
  std::atomic<int> sum = 0;
  tasks.run([&](int& rank) { sum += rank; });
  tasks.run([&](int& rank) { sum += 10 * rank; });
  CHECK(sum == 33);
  const auto fail = [](int& rank) {
    if (rank == 1) {
      throw UserError(ExitCode::config, "one of three");
    }
  };
  CHECK_THROWS_AS(tasks.run(fail), UserError);
}
