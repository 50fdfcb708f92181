// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// Training in f16: losses beside f32's, and steps whose gradients overflow on some rank.
#include "run/tiny_run.hpp"
#include "shared_arena.hpp"
#include "verify/mesh_traces.hpp"

#include <fourfold/comm/thread_group.hpp>
#include <fourfold/model/parameters.hpp>
#include <fourfold/parallel/context_cut.hpp>
#include <fourfold/train/batch_loader.hpp>
#include <fourfold/train/step_runner.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

using Catch::Matchers::WithinRel;
using namespace fourfold;
using comm::MeshShape;
using test::mesh_options;
using test::Options;
using test::RunTrace;
using test::TinyRun;
using train::StepStatus;

namespace {

Options f16(const Options& more = {}) {
  return test::joined({"train.precision=f16"}, more);
}

/// Adam makes full steps of gradients that are rounding noise: a small rate keeps that small.
const std::string gentle = "optim.lr=1e-3";

const MeshShape meshes[] = {{.dp = 2}, {.cp = 2},          {.tp = 2},
                            {.pp = 2}, {.pp = 2, .cp = 2}, {.dp = 2, .tp = 2}};

std::string refusal(const TinyRun& tiny, const std::string& name, const Options& options) {
  try {
    tiny.train(2, 20, name, options);
  } catch (const UserError& error) {
    CHECK(error.code() == ExitCode::data_corrupt);
    return error.what();
  }
  return "trained";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("the losses of f16 follow those of f32", "[loss_scaling]") {
  const std::string family = GENERATE("gpt2", "llama");
  const TinyRun tiny(family);
  const RunTrace wide = tiny.train(1, 20, "f32", {gentle});
  const RunTrace half = tiny.train(1, 20, "f16", f16({gentle}));
  REQUIRE(half.losses.size() == wide.losses.size());
  CHECK(half.losses.back() < 0.98 * half.losses.front());
  for (std::size_t i = 0; i < wide.losses.size(); ++i) {
    // Measured: 4e-6 and 3e-4. bf16, with three bits less, has eight times that.
    CHECK_THAT(half.losses[i], WithinRel(wide.losses[i], 2e-5));
    CHECK_THAT(half.norms[i], WithinRel(wide.norms[i], 1e-3));
  }
  CHECK(half.evaluations.size() == wide.evaluations.size());
  CHECK(wide.loss_scales == std::vector<double>(20, 0.0));
  CHECK(half.loss_scales == std::vector<double>(20, 65536.0));
  CHECK(half.skipped_steps.back() == 0);
}

namespace {

/// One rank's part of one step.
struct RankStep {
  train::StepOutcome outcome;
  train::LossScaleState state;
  bool moved = false;                ///< any bit of weights, masters or moments
  std::set<std::string> overflowed;  ///< parameters with a gradient here that is not finite
};

std::vector<std::byte> bytes_of(ConstTensorView view) {
  const auto* first = static_cast<const std::byte*>(view.data());
  return {first, first + view.bytes()};
}

std::vector<std::vector<std::byte>> state_of(const train::StepRunner& runner) {
  std::vector<std::vector<std::byte>> state{bytes_of(runner.parameters().weights()),
                                            bytes_of(runner.parameters().masters())};
  for (const train::Moment& moment : runner.optimizer().moments()) {
    state.push_back(bytes_of(moment.flat));
  }
  return state;
}

/// Moves a factor from one matrix of the first block's feed-forward part to the next, here only: as
/// its input is small, almost the same goes forward, but the gradient between them is that much
/// larger.
void make_steep(const model::Parameters& parameters) {
  constexpr float factor = 0x1p14F;
  for (const auto& [part, by] : {std::pair("up", 1 / factor), std::pair("down", factor)}) {
    const model::Parameter* const found =
        parameters.find(fmt::format("layers.0.mlp.{}_proj.weight", part));
    for (std::int64_t i = 0; found != nullptr && i < found->master.elements(); ++i) {
      found->master.as<float>()[i] *= by;
    }
  }
  parameters.update_weights_from_masters({});
}

/// What is special about a rank.
enum class Role { plain, steep, without_targets };

/// Step 1 of a run on a mesh of threads, by world rank.
template <class RoleOf>
std::vector<RankStep> one_step(const runfile::RunConfig& config, const MeshShape& shape,
                               const RoleOf& role_of) {
  std::vector<RankStep> steps(static_cast<std::size_t>(shape.ranks()));
  comm::run_device_ranks(static_cast<int>(shape.ranks()), [&](comm::Communicator& world) {
    comm::Mesh mesh(shape, world);
    fourfold::harness::SharedArena arena;
    const data::TokenDataset dataset(
        config.data.train, train::dataset_options(config, data::TokenDataset::Order::shuffled));
    const train::ResolvedRun run = train::resolve_run({.config = config}, mesh.shape());
    train::StepRunner runner(run, mesh, arena);
    train::BatchLoader loader(
        dataset, run.batches, mesh.coordinate().dp,
        parallel::context_chunks(config.model.context, shape.cp, mesh.coordinate().cp), arena);
    model::initialise(runner.parameters(), 7, {});
    const Role role = role_of(mesh.coordinate());
    if (role == Role::steep) {
      make_steep(runner.parameters());
    }
    const train::StepBatches loaded = loader.load(0, 0, {});
    std::vector<model::Batch> batches(loaded.micro_batches.begin(), loaded.micro_batches.end());
    const std::vector<std::int32_t> none(static_cast<std::size_t>(config.model.context),
                                         data::ignored_target);
    if (role == Role::without_targets) {
      for (model::Batch& batch : batches) {
        batch.target_N = ConstTensorView(none.data(), batch.target_N.shape());
      }
    }
    const auto before = state_of(runner);
    runner.run(0, {batches, loaded.targets}, 1e-3, {});
    RankStep& step = steps[static_cast<std::size_t>(world.rank())];
    step.outcome = runner.outcome({});
    step.state = runner.loss_scale().state();
    step.moved = state_of(runner) != before;
    for (const model::Parameter& parameter : runner.parameters()) {
      const auto* gradient = parameter.gradient.as<float>();
      if (!std::all_of(gradient, gradient + parameter.gradient.elements(),
                       [](float value) { return std::isfinite(value); })) {
        step.overflowed.insert(parameter.spec.name);
      }
    }
  });
  return steps;
}

void check_all_skipped(const std::vector<RankStep>& steps) {
  for (const RankStep& step : steps) {
    CHECK(std::isfinite(step.outcome.loss));
    CHECK_FALSE(std::isfinite(step.outcome.grad_norm));
    CHECK(step.outcome.status == StepStatus::skipped);
    CHECK_FALSE(step.moved);
    CHECK(step.state ==
          train::LossScaleState{.scale = static_cast<std::int64_t>(step.outcome.loss_scale) / 2,
                                .good_steps = 0,
                                .skipped_steps = 1});
  }
}

void check_all_applied(const std::vector<RankStep>& steps) {
  for (const RankStep& step : steps) {
    CHECK(step.outcome.status == StepStatus::applied);
    CHECK(step.overflowed.empty());
    CHECK(step.moved);
  }
}

}  // namespace

TEST_CASE("an overflow on one rank of the data plane skips the step on all", "[loss_scaling]") {
  const TinyRun tiny("gpt2");
  for (const MeshShape& mesh : {MeshShape{.dp = 2}, {.cp = 2}, {.dp = 2, .cp = 2}, {.dp = 4}}) {
    CAPTURE(mesh.str());
    // Only the last rank has losses, so only it has gradients that a scale can make too large.
    const auto last_alone = [&](const comm::MeshCoordinate& at) {
      return at.dp == mesh.dp - 1 && at.cp == mesh.cp - 1 ? Role::plain : Role::without_targets;
    };
    const auto step_with = [&](const std::string& scale) {
      Options options = f16({"train.loss_scale_initial=" + scale});
      std::ranges::copy(mesh_options(mesh), std::back_inserter(options));
      return one_step(tiny.config(1, "none", options).config, mesh, last_alone);
    };
    check_all_skipped(step_with("1099511627776"));
    check_all_applied(step_with("1024"));
  }
}

TEST_CASE("an overflow in one rank's part of the model skips the step on all", "[loss_scaling]") {
  const TinyRun tiny("gpt2");
  const auto run = [&](const MeshShape& mesh, Role special) {
    Options options = f16({"model.tie_embeddings=false"});
    std::ranges::copy(mesh_options(mesh), std::back_inserter(options));
    return one_step(tiny.config(1, "none", options).config, mesh,
                    [&](const comm::MeshCoordinate& at) {
                      return at.tp == mesh.tp - 1 && at.pp == 0 ? special : Role::plain;
                    });
  };
  SECTION("of a tensor-parallel rank") {
    const auto steps = run({.tp = 2}, Role::steep);
    check_all_skipped(steps);
    CHECK_FALSE(steps[0].overflowed.contains("layers.0.mlp.up_proj.weight"));
    CHECK(steps[1].overflowed.contains("layers.0.mlp.up_proj.weight"));
    check_all_applied(run({.tp = 2}, Role::plain));
  }
  SECTION("of a pipeline stage") {
    const auto steps = run({.pp = 2}, Role::steep);
    check_all_skipped(steps);
    CHECK(steps[0].overflowed.contains("layers.0.mlp.up_proj.weight"));
    CHECK(steps[1].overflowed.empty());
    check_all_applied(run({.pp = 2}, Role::plain));
  }
  SECTION("of one of four") {
    const auto steps = run({.pp = 2, .tp = 2}, Role::steep);
    check_all_skipped(steps);
    CHECK_FALSE(steps[0].overflowed.contains("layers.0.mlp.up_proj.weight"));
    CHECK(steps[1].overflowed.contains("layers.0.mlp.up_proj.weight"));
    CHECK(steps[2].overflowed.empty());
    CHECK(steps[3].overflowed.empty());
  }
}

TEST_CASE("all ranks keep the same bits while the loss scale finds its place", "[loss_scaling]") {
  const TinyRun tiny("llama");
  for (const MeshShape& mesh : meshes) {
    Options options = f16({"train.loss_scale_initial=1073741824", "train.loss_scale_window=2",
                           "train.global_batch=4"});
    std::ranges::copy(mesh_options(mesh), std::back_inserter(options));
    constexpr int steps = 24;
    const test::MeshTrace trace =
        test::trace_mesh(tiny.config(steps, "none", options).config, mesh, steps);
    CAPTURE(mesh.str());
    CHECK(trace.disagreements == std::vector<std::string>{});
    double scale = 0x1p30;
    int skipped = 0;
    int good = 0;
    for (int i = 0; i < steps; ++i) {
      const train::StepTrace& step = trace.steps[static_cast<std::size_t>(i)];
      CHECK(step.loss_scale == scale);
      const auto& before =
          i == 0 ? trace.initial_weights : trace.steps[static_cast<std::size_t>(i - 1)].weights;
      if (step.status == StepStatus::skipped) {
        CHECK(step.weights == before);
        scale /= 2;
        good = 0;
        ++skipped;
      } else {
        CHECK(step.weights != before);
        good = good == 1 ? 0 : good + 1;
        scale *= good == 0 ? 2 : 1;
      }
    }
    CHECK(skipped > 5);
    CHECK(skipped < steps - 5);
  }
}

// A step of Adam with the first bias correction has the size of the learning rate, whatever the
// gradient; had the skipped steps counted, it would be smaller.
TEST_CASE("bias corrections count applied updates only", "[loss_scaling]") {
  const TinyRun tiny("gpt2");
  const Options options = f16({"train.loss_scale_initial=1073741824", "optim.weight_decay=0",
                               "optim.lr=1e-3", "optim.warmup_steps=0", "optim.name=adam"});
  const test::MeshTrace trace = test::trace_mesh(tiny.config(24, "none", options).config, {}, 24);
  const auto first = std::ranges::find(trace.steps, StepStatus::applied, &train::StepTrace::status);
  REQUIRE(first != trace.steps.end());
  REQUIRE(first - trace.steps.begin() > 5);
  double largest = 0;
  for (std::size_t tensor = 0; tensor < trace.table.size(); ++tensor) {
    for (std::size_t i = 0; i < first->weights[tensor].size(); ++i) {
      const float change = first->weights[tensor][i] - trace.initial_weights[tensor][i];
      largest = std::max(largest, static_cast<double>(std::fabs(change)));
    }
  }
  CHECK_THAT(largest, WithinRel(1e-3, 1e-3));
}

TEST_CASE("an f16 run that stopped has the bits of one that did not", "[loss_scaling]") {
  const TinyRun tiny("gpt2");
  const std::string optimizer = GENERATE("adamw", "sgd");
  const Options options = f16({"train.loss_scale_initial=16777216", "train.loss_scale_window=3",
                               "model.dropout=0.1", "optim.name=" + optimizer});
  const RunTrace whole = tiny.train(2, 20, optimizer + "whole", options);
  const RunTrace first = tiny.train(2, 10, optimizer + "parts", options);
  const RunTrace second = tiny.train(2, 20, optimizer + "parts", options);
  REQUIRE(first.skipped_steps.back() > 0);                            // overflows before
  REQUIRE(second.skipped_steps.back() > first.skipped_steps.back());  // and after the stop
  const auto joined = [](auto one, const auto& other) {
    one.insert(one.end(), other.begin(), other.end());
    return one;
  };
  CHECK(joined(first.losses, second.losses) == whole.losses);
  CHECK(joined(first.loss_scales, second.loss_scales) == whole.loss_scales);
  CHECK(joined(first.skipped_steps, second.skipped_steps) == whole.skipped_steps);
  CHECK(second.weights == whole.weights);
  CHECK(second.moments == whole.moments);
}

TEST_CASE("a loss scale goes on on another mesh, and starts where there was none",
          "[loss_scaling]") {
  const TinyRun tiny("llama");
  const Options options = f16({"train.loss_scale_initial=16777216", "train.loss_scale_window=3"});
  const RunTrace one = tiny.train(1, 12, "one", options);
  const RunTrace before = tiny.train(1, 8, "moved", options);
  REQUIRE(before.skipped_steps.back() > 0);
  for (const MeshShape& mesh : {MeshShape{.pp = 2}, {.dp = 2}, {.cp = 2}, {.tp = 2}}) {
    const std::string name = "moved_to_" + mesh.str();
    tiny.copy_checkpoints("moved", name);
    const RunTrace after = tiny.train_on(mesh, 12, name, options);
    CAPTURE(name);
    REQUIRE(after.loss_scales.size() == 4);
    CHECK(after.loss_scales.front() == one.loss_scales[8]);
    CHECK(after.skipped_steps.front() >= before.skipped_steps.back());
    for (std::size_t i = 0; i < 4; ++i) {
      CHECK_THAT(after.losses[i], WithinRel(one.losses[8 + i], 1e-2));
    }
  }
  // Checkpoints of f32 have no loss scale, as those of older versions.
  tiny.train(1, 2, "wide");
  const RunTrace narrowed =
      tiny.train(1, 4, "wide", f16({"train.loss_scale_initial=512"}), {"train.precision"});
  CHECK(narrowed.loss_scales == std::vector<double>(2, 512.0));
}

TEST_CASE("f16 ends when the scale cannot fall further, and when the loss is lost",
          "[loss_scaling]") {
  const TinyRun tiny("gpt2");
  const std::string lowest =
      refusal(tiny, "lowest",
              f16({"train.loss_scale_initial=1099511627776", "train.loss_scale_min=137438953472"}));
  CHECK(contains(lowest, "overflow f16 at step 4"));
  CHECK(contains(lowest, "train.loss_scale_min"));
  const std::string fixed = refusal(tiny, "fixed", f16({"train.loss_scale=1099511627776"}));
  CHECK(contains(fixed, "overflow f16 at step 1"));
  CHECK(contains(fixed, "which is fixed"));
  const std::string diverged =
      refusal(tiny, "diverged", f16({"optim.name=sgd", "optim.lr=1e30", "optim.clip_norm=0"}));
  CHECK(contains(diverged, "diverged"));
}
