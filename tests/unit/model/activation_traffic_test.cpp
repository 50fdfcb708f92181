// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Activations that lie on the host between the passes have the bits of those that stay.
#include "small_models.hpp"

#include <fourfold/device/buffer.hpp>
#include <fourfold/model/presets.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

using fourfold::DType;
using fourfold::TensorView;
using fourfold::model::Architecture;
using fourfold::model::Family;
using fourfold::model::Gradients;
using fourfold::model::ParallelHooks;
using fourfold::model::StageOptions;
using fourfold::model::UnitRange;
using fourfold::model_test::Model;
using fourfold::model_test::options_for;
using fourfold::model_test::OwnedBatch;
using fourfold::model_test::small;

namespace device = fourfold::device;
namespace model = fourfold::model;

using namespace fourfold::model_test::usual;

namespace {

Architecture config_of(Family family, std::int64_t layers, double dropout) {
  Architecture config = small(family, dropout, false);
  config.layers = layers;
  return config;
}

/// The same stage twice: its activations stay, or lie on the host.
struct Pair {
  Pair(const Architecture& config, UnitRange units, StageOptions options, DType compute)
      : staying(config, units, options, hooks, compute),
        moving(config, units, on_host(options), hooks, compute) {}
  static StageOptions on_host(StageOptions options) {
    options.activations_on_host = true;
    return options;
  }

  ParallelHooks hooks;
  Model staying;
  Model moving;
};

/// Two steps of four micro-batches whose passes cross each other, as no schedule but all of them
/// together have it, with evaluations in slots that are free. Losses, then gradients.
std::vector<float> crossing_passes(Model& model, const std::vector<OwnedBatch>& batches,
                                   bool split) {
  std::vector<float> result;
  const auto add_losses = [&](int slot) {
    const std::vector<float> losses = model.losses(slot);
    result.insert(result.end(), losses.begin(), losses.end());
  };
  const auto forward = [&](int slot) {
    model.stage->forward_train(slot, batches[static_cast<std::size_t>(slot)].view(), scale, stream);
    add_losses(slot);
  };
  const auto backward = [&](int slot) {
    if (split) {
      model.stage->backward_input(slot, stream);
    } else {
      model.stage->backward(slot, Gradients::partial, stream);
    }
  };
  const auto weight = [&](int slot) {
    if (split) {
      model.stage->backward_weight(slot, Gradients::partial, stream);
    }
  };
  const auto evaluate = [&](int slot) {
    model.stage->forward_evaluate(slot, batches[1].view(), stream);
    add_losses(slot);
  };
  for (int step = 0; step < 2; ++step) {
    forward(0);
    forward(1);
    backward(0);
    evaluate(3);
    weight(0);
    forward(2);
    evaluate(3);  // between a forward and a backward pass that follow each other
    backward(2);
    forward(0);
    backward(1);
    weight(1);  // straight after its first half
    evaluate(1);
    weight(2);
    backward(0);
    evaluate(2);
    weight(0);
  }
  const std::vector<float> gradients = model.gradients();
  result.insert(result.end(), gradients.begin(), gradients.end());
  return result;
}

}  // namespace

TEST_CASE("activations on the host have the bits of those that stay", "[activation_traffic]") {
  const std::string recompute =
      GENERATE("none", "selective", "full", "every:2", "every:3", "every:8");
  const Family family = GENERATE(Family::gpt2, Family::llama);
  const bool split = GENERATE(false, true);
  const DType compute = GENERATE(DType::f32, DType::bf16);
  for (const std::int64_t layers : {1, 2, 5}) {  // fewer blocks than turns, as many, more
    CAPTURE(recompute, model::name(family), split, fourfold::name(compute), layers);
    const Architecture config = config_of(family, layers, layers == 2 ? 0.0 : 0.2);
    StageOptions options = options_for(sequences, tokens, 4);
    options.recompute = *model::recompute_named(recompute);
    options.backward = split ? StageOptions::Backward::split : StageOptions::Backward::fused;
    Pair pair(config, model::all_units(config), options, compute);
    const std::vector<OwnedBatch> batches = ragged_batches(config);
    CHECK(crossing_passes(pair.moving, batches, split) ==
          crossing_passes(pair.staying, batches, split));
  }
}

TEST_CASE("stages with one end or none keep their blocks on the host", "[activation_traffic]") {
  const Family family = GENERATE(Family::gpt2, Family::llama);
  const UnitRange units = GENERATE(UnitRange{0, 4}, UnitRange{2, 5}, UnitRange{0, 1});
  const Architecture config = config_of(family, 5, 0.2);
  Pair pair(config, units, options_for(sequences, tokens, 2), DType::f32);
  const std::vector<OwnedBatch> batches = ragged_batches(config);
  const auto fill = [](TensorView view, float first) {
    for (std::int64_t i = 0; i < view.elements(); ++i) {
      view.as<float>()[i] = first + 0.01F * static_cast<float>(i % 13);
    }
  };
  const auto passes = [&](Model& model) {
    std::vector<float> result;
    const auto add = [&](TensorView view) {
      result.insert(result.end(), view.as<float>(), view.as<float>() + view.elements());
    };
    for (const int slot : {0, 1}) {
      fill(model.stage->input(slot), 0.1F * static_cast<float>(slot));
      model.stage->forward_train(slot, batches[0].view(), scale, stream);
    }
    for (const int slot : {0, 1}) {  // a message may come into a slot while another is computed
      add(model.stage->output(slot));
      fill(model.stage->output_gradient(slot), 0.2F);
    }
    for (const int slot : {0, 1}) {
      model.stage->backward(slot, Gradients::partial, stream);
    }
    add(model.stage->input_gradient(0));
    add(model.stage->input_gradient(1));
    const std::vector<float> gradients = model.gradients();
    result.insert(result.end(), gradients.begin(), gradients.end());
    return result;
  };
  CHECK(passes(pair.moving) == passes(pair.staying));
}

TEST_CASE("a stage with activations on the host predicts as any other", "[activation_traffic]") {
  const Architecture config = config_of(Family::llama, 5, 0.2);
  Pair pair(config, model::all_units(config), options_for(sequences, tokens), DType::f32);
  const OwnedBatch batch(config, 1, tokens, 1);
  const auto row = [&](Model& model) {
    model.stage->forward_train(0, batch.view(), scale, stream);
    model.stage->backward(0, Gradients::complete, stream);
    const TensorView logits = model.stage->predict(batch.view(), tokens - 2, stream);
    return std::vector<float>(logits.as<float>(), logits.as<float>() + logits.elements());
  };
  CHECK(row(pair.moving) == row(pair.staying));
}
