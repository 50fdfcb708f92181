// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Every policy of recomputation has the bits of none.
#include "small_models.hpp"

#include <fourfold/model/presets.hpp>
#include <fourfold/model/recompute.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>

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
using fourfold::model::Recompute;
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

Recompute each_policy() {
  const std::string text =
      GENERATE("full", "every:2", "every:3", "every:5", "every:8", "selective");
  return *model::recompute_named(text);
}

/// Five blocks: groups of two and three leave a shorter last one.
Architecture five_blocks(double dropout) {
  Architecture config = small(GENERATE(Family::gpt2, Family::llama), dropout, false);
  config.layers = 5;
  return config;
}

StageOptions options(const Recompute& recompute,
                     StageOptions::Backward backward = StageOptions::Backward::fused) {
  StageOptions result = options_for(sequences, tokens, 3);
  result.recompute = recompute;
  result.backward = backward;
  return result;
}

/// Three micro-batches in flight at once, with an evaluation in a slot that is done. Returns
/// losses, then gradients.
std::vector<float> three_in_flight(Model& model, const std::vector<OwnedBatch>& batches,
                                   bool split) {
  std::vector<float> result;
  const auto add_losses = [&](int slot) {
    const std::vector<float> losses = model.losses(slot);
    result.insert(result.end(), losses.begin(), losses.end());
  };
  for (int i = 0; i < 3; ++i) {
    model.stage->forward_train(i, batches[static_cast<std::size_t>(i)].view(), scale, stream);
    add_losses(i);
  }
  for (const int i : {1, 0, 2}) {
    if (split) {
      model.stage->backward_input(i, stream);
    } else {
      model.stage->backward(i, i == 2 ? Gradients::complete : Gradients::partial, stream);
      model.stage->forward_evaluate(i, batches[1].view(), stream);
      add_losses(i);
    }
  }
  for (int i = 0; split && i < 3; ++i) {
    model.stage->backward_weight(i, i == 2 ? Gradients::complete : Gradients::partial, stream);
  }
  const std::vector<float> gradients = model.gradients();
  result.insert(result.end(), gradients.begin(), gradients.end());
  return result;
}

}  // namespace

TEST_CASE("policies have names", "[recompute]") {
  for (const std::string text : {"none", "full", "selective", "every:2", "every:17"}) {
    const auto policy = model::recompute_named(text);
    REQUIRE(policy);
    CHECK(model::name(*policy) == text);
  }
  CHECK(model::recompute_named("every:1") == Recompute::full());
  CHECK(model::recompute_named("none") == Recompute{});
  for (const std::string text : {"", "Full", "every", "every:", "every:0", "every:-2", "every:x",
                                 "every:2x", "every: 2", "every:2.5", "every:99999999999", "all"}) {
    CAPTURE(text);
    CHECK(!model::recompute_named(text));
  }
}

TEST_CASE("groups run again before the last of their blocks goes backward", "[recompute]") {
  const auto ends = [](const Recompute& policy, std::size_t blocks) {
    std::string text;
    for (std::size_t i = 0; i < blocks; ++i) {
      text += policy.runs_group_again(i, blocks) ? std::to_string(policy.group_begin(i)) : "-";
    }
    return text;
  };
  CHECK(ends(*model::recompute_named("none"), 5) == "-----");
  CHECK(ends(*model::recompute_named("selective"), 5) == "-----");
  CHECK(ends(*model::recompute_named("full"), 5) == "01234");
  CHECK(ends(*model::recompute_named("every:2"), 5) == "-0-24");
  CHECK(ends(*model::recompute_named("every:3"), 6) == "--0--3");
  CHECK(ends(*model::recompute_named("every:9"), 4) == "---0");
}

TEST_CASE("recomputation has the bits of keeping everything, several micro-batches in flight",
          "[recompute]") {
  const Recompute policy = each_policy();
  const Architecture config = five_blocks(GENERATE(0.0, 0.2));
  const DType compute = GENERATE(DType::f32, DType::bf16);
  const auto backward = GENERATE(StageOptions::Backward::fused, StageOptions::Backward::split);
  const bool split = backward == StageOptions::Backward::split;
  CAPTURE(model::name(policy), model::family_name(config), config.dropout, split);
  ParallelHooks hooks;
  Model keeping(config, model::all_units(config), options({}, backward), hooks, compute);
  Model again(config, model::all_units(config), options(policy, backward), hooks, compute);
  const std::vector<OwnedBatch> batches = ragged_batches(config);
  CHECK(three_in_flight(again, batches, split) == three_in_flight(keeping, batches, split));
}

TEST_CASE("stages recompute their own blocks", "[recompute]") {
  const Recompute policy = each_policy();
  const Architecture config = five_blocks(0.2);
  CAPTURE(model::name(policy), model::family_name(config));
  ParallelHooks hooks;
  Model whole(config, model::all_units(config), options({}), hooks);
  const OwnedBatch batch(config, sequences, tokens, 1);
  whole.stage->forward_train(0, batch.view(), scale, stream);
  whole.stage->backward(0, Gradients::complete, stream);

  std::vector<std::unique_ptr<Model>> parts;
  for (const UnitRange units : {UnitRange{0, 4}, UnitRange{4, 6}, UnitRange{6, 7}}) {
    parts.push_back(std::make_unique<Model>(config, units, options(policy), hooks));
  }
  const auto hand_over = [](TensorView from, TensorView to) {
    device::copy(to.data(), from.data(), to.bytes(), stream);
  };
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) {
      hand_over(parts[i - 1]->stage->output(0), parts[i]->stage->input(0));
    }
    parts[i]->stage->forward_train(0, batch.view(), scale, stream);
  }
  for (std::size_t i = parts.size(); i-- > 0;) {
    if (i + 1 < parts.size()) {
      hand_over(parts[i + 1]->stage->input_gradient(0), parts[i]->stage->output_gradient(0));
    }
    parts[i]->stage->backward(0, Gradients::complete, stream);
  }
  CHECK(parts.back()->losses() == whole.losses());
  for (const auto& part : parts) {
    for (const model::Parameter& mine : part->parameters) {
      CAPTURE(mine.spec.name);
      CHECK(std::equal(mine.gradient.as<float>(), mine.gradient.as<float>() + mine.flat.count,
                       whole.parameters.at(mine.spec.name).gradient.as<float>()));
    }
  }
}

TEST_CASE("a stage that recomputes predicts as any other", "[recompute]") {
  const Recompute policy = each_policy();
  const Architecture config = five_blocks(0.2);
  ParallelHooks hooks;
  Model keeping(config, model::all_units(config), options({}), hooks);
  Model again(config, model::all_units(config), options(policy), hooks);
  const OwnedBatch batch(config, 1, tokens, 1);
  const auto row = [&](Model& model) {
    const TensorView logits = model.stage->predict(batch.view(), tokens - 2, stream);
    return std::vector<float>(logits.as<float>(), logits.as<float>() + logits.elements());
  };
  CHECK(row(again) == row(keeping));
}
