// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "scratch_folder.hpp"
#include "shared_arena.hpp"
#include "whole_model.hpp"

#include <fourfold/comm/communicator.hpp>
#include <fourfold/comm/thread_group.hpp>
#include <fourfold/io/checkpoint_find.hpp>
#include <fourfold/io/checkpoint_store.hpp>
#include <fourfold/train/optimizer.hpp>
#include <fourfold/train/training_state.hpp>
#include <fourfold/train/weight_update.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>

#include <cmath>
#include <string>
#include <utility>

using Catch::Matchers::WithinAbs;
using fourfold::DType;
namespace model = fourfold::model;
namespace runfile = fourfold::runfile;
namespace train = fourfold::train;

namespace {

model::Architecture tiny_model() {
  model::Architecture config;
  config.layers = 1;
  config.hidden = 8;
  config.attention.heads = 2;
  config.vocab = 11;
  config.context = 4;
  return config.resolved();
}

/// One number where kernels can read it.
fourfold::device::Tensor number(float value) {
  fourfold::device::Tensor tensor(DType::f32, {1});
  tensor.as<float>()[0] = value;
  return tensor;
}

void update_all(train::Optimizer& optimizer, const fourfold::parallel::ParameterShard& share,
                const train::UpdateStep& step) {
  for (const fourfold::parallel::ParameterShard::Run& run : share.runs()) {
    optimizer.update(run.segment, step, {});
  }
}

}  // namespace

TEST_CASE("updates go from the last unit down, vectors after all matrices", "[optimizer]") {
  fourfold::harness::SharedArena arena;
  const model::Parameters parameters(model::parameter_table(tiny_model()), DType::f32, arena);
  const std::vector<model::Segment>& segments = parameters.layout().segments;
  const std::vector<std::size_t> order = train::update_order(parameters);
  REQUIRE(order.size() == segments.size());
  for (std::size_t i = 1; i < order.size(); ++i) {
    const model::Segment& before = segments[order[i - 1]];
    const model::Segment& now = segments[order[i]];
    const bool vectors = now.unit == model::Segment::every_unit;
    CHECK(
        (before.unit == model::Segment::every_unit ? vectors : vectors || order[i] < order[i - 1]));
  }
  CHECK(segments[order.front()].unit > segments[order[order.size() / 2]].unit);
}

TEST_CASE("an update follows the formula; norms and biases do not decay", "[optimizer]") {
  const DType compute = GENERATE(DType::f32, DType::bf16, DType::f16);
  fourfold::harness::SharedArena arena;
  const model::Parameters parameters(model::parameter_table(tiny_model()), compute, arena);
  runfile::OptimConfig config;
  config.weight_decay = 0.5;
  const fourfold::parallel::ParameterShard share(parameters);
  train::StateTier tier({}, arena);
  train::Optimizer optimizer({.rules = train::rules_of(config)}, share, tier, {});
  model::initialise(parameters, 3, {});
  std::vector<float> before;
  for (const model::Parameter& parameter : parameters) {
    for (std::int64_t i = 0; i < parameter.master.elements(); ++i) {
      before.push_back(parameter.master.as<float>()[i]);
      parameter.gradient.as<float>()[i] = 0.25F;
    }
  }
  const fourfold::device::Tensor scale = number(2.0F);
  update_all(optimizer, share, {.update = 1, .lr = 0.01, .gradient_scale = scale.as<float>()});

  std::size_t next = 0;
  for (const model::Parameter& parameter : parameters) {
    for (std::int64_t i = 0; i < parameter.master.elements(); ++i) {
      // First step of AdamW: both bias-corrected moments are the gradient's, so the step is lr.
      const double decayed = before[next++] * (1 - 0.01 * (parameter.spec.decay ? 0.5 : 0.0));
      CHECK_THAT(static_cast<double>(parameter.master.as<float>()[i]),
                 WithinAbs(decayed - 0.01 * (0.5 / (0.5 + 1e-8)), 1e-7));
      if (compute == DType::bf16) {
        CHECK(parameter.weight.as<fourfold::BFloat16>()[i] ==
              fourfold::BFloat16(parameter.master.as<float>()[i]));
      } else if (compute == DType::f16) {
        CHECK(parameter.weight.as<fourfold::Float16>()[i] ==
              fourfold::Float16(parameter.master.as<float>()[i]));
      }
    }
  }
}

TEST_CASE("the first update of each rule, and what verify expects of it, follow the formula",
          "[optimizer]") {
  using enum runfile::OptimizerKind;
  runfile::OptimConfig config;
  config.name = GENERATE(adamw, adam, sgd);
  config.weight_decay = 0.5;
  const bool decays = GENERATE(false, true);
  const bool reference = GENERATE(false, true);
  const fourfold::device::Tensor master = number(2);
  const fourfold::device::Tensor gradient = number(-0.25F);
  const fourfold::device::Tensor scale = number(2);
  std::vector<fourfold::device::Tensor> states;
  const auto rule = train::rule_of(train::rules_of(config), model::OptimizerGroup::others);
  train::Elements elements{.state = {0, 1},
                           .master = master,
                           .states = {},
                           .gradient = gradient,
                           .weight = {},
                           .decay = decays};
  for (std::size_t i = 0; i < rule->states().size(); ++i) {
    elements.states[i] = states.emplace_back(number(0));
  }
  const train::UpdateStep step{.update = 1, .lr = 0.01, .gradient_scale = scale.as<float>()};
  if (reference) {
    rule->reference_update({1}, elements, step);
  } else {
    dynamic_cast<const train::ElementwiseRule&>(*rule).update(elements, step, {});
  }
  const double decay = decays ? 0.5 * 2 : 0;  // which turns the gradient of -0.5 around
  const double expected = config.name == adamw  ? 2 - 0.01 * decay + 0.01
                          : config.name == adam ? 2 - (decays ? 0.01 : -0.01)
                                                : 2 - 0.01 * (decay - 0.5);
  CHECK_THAT(static_cast<double>(*master.as<float>()), WithinAbs(expected, 5e-7));
}

TEST_CASE("the betas reach the kernel in double", "[optimizer]") {
  fourfold::harness::SharedArena arena;
  const model::Parameters parameters(model::parameter_table(tiny_model()), DType::f32, arena);
  runfile::OptimConfig config;
  config.beta2 = 0.999;
  config.weight_decay = 0;
  const fourfold::parallel::ParameterShard share(parameters);
  train::StateTier tier({}, arena);
  train::Optimizer optimizer({.rules = train::rules_of(config)}, share, tier, {});
  const model::Parameter& parameter = *parameters.begin();
  parameter.gradient.as<float>()[0] = 0.25F;
  const fourfold::device::Tensor scale = number(1.0F);
  // So late that nothing corrects a bias: 1 - beta2 enters as it is, and as a float is off by 1e-5.
  update_all(optimizer, share,
             {.update = 1'000'000, .lr = 1.0, .gradient_scale = scale.as<float>()});
  const double moved = -0.1 * 0.25 / (std::sqrt(0.001 * 0.25 * 0.25) + 1e-8);
  CHECK_THAT(static_cast<double>(parameter.master.as<float>()[0]),
             WithinAbs(moved, 5e-7 * std::abs(moved)));
}

TEST_CASE("a checkpoint sees each parameter once per state, at its place in the flat memory",
          "[training_state]") {
  const bool sgd = GENERATE(false, true);
  fourfold::harness::SharedArena arena;
  const model::Parameters parameters(model::parameter_table(tiny_model()), DType::bf16, arena);
  runfile::OptimConfig config;
  config.name = sgd ? runfile::OptimizerKind::sgd : runfile::OptimizerKind::adamw;
  const fourfold::parallel::ParameterShard share(parameters);
  train::StateTier tier({}, arena);
  train::Optimizer optimizer({.rules = train::rules_of(config)}, share, tier, {});
  const auto world = fourfold::comm::make_dry_run(0, 4);
  const fourfold::comm::Mesh mesh({.dp = 4}, *world);
  runfile::RunConfig run;
  run.model = tiny_model();
  run.optim = config;
  const train::ResolvedRun resolved = train::resolve_run({.config = run}, {.dp = 4});
  const train::TrainingState state(resolved, share, optimizer, mesh);
  const std::size_t states = sgd ? 2 : 3;
  CHECK(state.layouts().size() == parameters.all().size() * states);
  CHECK(state.pieces().size() == state.layouts().size());
  CHECK_NOTHROW(fourfold::io::plan_save(state.layouts(), 4));
  const train::TrainingState weights_only(parameters, 4);
  CHECK(weights_only.layouts().size() == parameters.all().size());

  const model::Parameter& down = parameters.at("layers.0.mlp.down_proj.weight");
  for (const auto& piece : state.pieces()) {
    if (piece.id.name == down.spec.name && piece.id.state == fourfold::io::TensorState::master) {
      CHECK(piece.data.data() == down.master.data());
      CHECK(piece.data.shape() == down.spec.shape);
    }
  }
}

TEST_CASE("progress survives the way through a checkpoint's scalars", "[training_state]") {
  const train::Progress progress{.step = 7, .consumed_samples = 56, .consumed_tokens = 890};
  const auto scalars = train::to_scalars(
      progress, train::LossScale(runfile::TrainConfig{}), "x = 1\n",
      {.files = {}, .token_counts = "1000,250", .digests = {}, .times = {}, .tokenizers = {}});
  CHECK(scalars.integer("consumed_samples") == 56);
  CHECK(scalars.integer("consumed_tokens") == 890);
  CHECK(scalars.text(train::config_text_name) == "x = 1\n");
  CHECK(scalars.integers.size() == 2);  // f32 keeps no loss scale
}

TEST_CASE("a loss scale survives the way through a checkpoint, a damaged one is refused",
          "[training_state]") {
  const fourfold::harness::ScratchFolder folder;
  const train::LossScaleState fresh{.scale = 65536, .good_steps = 0, .skipped_steps = 0};
  // What comes back of a checkpoint of step 5 with these integers.
  const auto read_back = [&](const std::string& name, auto... integers) {
    train::LossScaleState state;
    fourfold::comm::run_device_ranks(1, [&](fourfold::comm::Communicator& world) {
      fourfold::io::CheckpointStore store(folder / name);
      fourfold::io::SaveRequest request;
      request.step = 5;
      request.scalars.integers = {integers...};
      store.save(request, world);
      state = train::loss_scale_of(fourfold::io::find_newest_valid(folder / name, world).value(),
                                   fresh);
    });
    return state;
  };
  using Entry = std::pair<const std::string, std::int64_t>;
  runfile::TrainConfig config;
  config.precision = DType::f16;
  train::LossScale saved(config);
  saved.finish_step(false);
  saved.finish_step(true);
  const auto integers = train::to_scalars({.step = 2}, saved, "", {}).integers;
  CHECK(read_back("whole", Entry{"loss_scale", integers.at("loss_scale")},
                  Entry{"loss_scale_good_steps", integers.at("loss_scale_good_steps")},
                  Entry{"skipped_steps", integers.at("skipped_steps")}) == saved.state());
  CHECK(read_back("older", Entry{"consumed_tokens", 7}) == fresh);
  for (const Entry& damaged :
       {Entry{"loss_scale", 0}, Entry{"loss_scale", -65536}, Entry{"loss_scale", 48},
        Entry{"loss_scale", std::int64_t{1} << 41}, Entry{"loss_scale_good_steps", -1},
        Entry{"skipped_steps", -1}, Entry{"skipped_steps", 6}}) {
    const std::string name = damaged.first + std::to_string(damaged.second);
    CHECK_THROWS_AS(read_back(name, damaged), fourfold::UserError);
  }
}
