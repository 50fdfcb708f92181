// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "small_models.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/philox.hpp>
#include <fourfold/device/device.hpp>
#include <fourfold/model/presets.hpp>
#include <fourfold/model/stage.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;
using fourfold::DType;
using fourfold::TensorView;
using fourfold::model::Architecture;
using fourfold::model::Family;
using fourfold::model::Gradients;
using fourfold::model::ParallelHooks;
using fourfold::model::Parameter;
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

struct Variant {
  Family family;
  double dropout;
  bool tied;
};

/// Both families, with and without dropout, tied and untied.
Variant each_variant() {
  return GENERATE(Variant{Family::gpt2, 0, true}, Variant{Family::gpt2, 0.2, false},
                  Variant{Family::llama, 0, false}, Variant{Family::llama, 0.2, true});
}

Architecture config_of(const Variant& variant) {
  return small(variant.family, variant.dropout, variant.tied);
}

void train(Model& model, int slot, const OwnedBatch& batch) {
  model.stage->forward_train(slot, batch.view(), scale, stream);
  model.stage->backward(slot, Gradients::complete, stream);
}

double sum(const std::vector<float>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

}  // namespace

TEST_CASE("the same run twice gives the same bits", "[stage]") {
  const Architecture config = config_of(each_variant());
  ParallelHooks hooks;
  Model a(config, model::all_units(config), options_for(sequences, tokens), hooks);
  Model b(config, model::all_units(config), options_for(sequences, tokens), hooks);
  const OwnedBatch batch(config, sequences, tokens, 1);
  train(a, 0, batch);
  train(b, 0, batch);
  CHECK(a.losses() == b.losses());
  CHECK(a.gradients() == b.gradients());
  CHECK(sum(a.losses()) > 10);
}

TEST_CASE("a stage is not made of heads that are too wide for the device", "[stage]") {
  const auto make = [](std::int64_t head_dim) {
    Architecture config = small(Family::llama);
    config.attention.head_dim = head_dim;
    ParallelHooks hooks;
    const Model made(config, model::all_units(config), options_for(sequences, tokens), hooks);
  };
  CHECK_NOTHROW(make(256));
  if (device::has_own_memory) {
    CHECK_THROWS_MATCHES(
        make(258), fourfold::UserError,
        MessageMatches(ContainsSubstring("model.head_dim = 258 is above 256") &&
                       ContainsSubstring("set it to 256 or less, or take more heads")));
  } else {
    CHECK_NOTHROW(make(258));
  }
}

TEST_CASE("gradients of micro-batches add up", "[stage]") {
  const Architecture config = config_of(each_variant());
  ParallelHooks hooks;
  Model model(config, model::all_units(config), options_for(sequences, tokens), hooks);
  const OwnedBatch first(config, sequences, tokens, 1);
  const OwnedBatch second(config, sequences, tokens, 2);
  train(model, 0, first);
  const std::vector<float> of_first = model.gradients();
  train(model, 0, second);
  const std::vector<float> of_both = model.gradients();
  model.parameters.zero_gradients(stream);
  train(model, 0, second);
  const std::vector<float> of_second = model.gradients();
  double largest = 0;
  double difference = 0;
  for (std::size_t i = 0; i < of_both.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(of_both[i])));
    difference = std::max(difference,
                          std::abs(static_cast<double>(of_both[i]) - of_first[i] - of_second[i]));
  }
  CHECK(largest > 1e-3);
  CHECK(difference < 1e-6 * largest);
}

TEST_CASE("slots do not touch each other", "[stage]") {
  const Architecture config = config_of(each_variant());
  ParallelHooks hooks;
  Model one(config, model::all_units(config), options_for(sequences, tokens, 1), hooks);
  Model three(config, model::all_units(config), options_for(sequences, tokens, 3), hooks);
  std::vector<OwnedBatch> batches;
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    batches.emplace_back(config, sequences, tokens, seed);
  }
  for (int i = 0; i < 3; ++i) {
    three.stage->forward_train(i, batches[static_cast<std::size_t>(i)].view(), scale, stream);
  }
  for (int i = 0; i < 3; ++i) {
    train(one, 0, batches[static_cast<std::size_t>(i)]);
    three.stage->backward(i, Gradients::complete, stream);
    CHECK(one.losses() == three.losses(i));
  }
  CHECK(one.gradients() == three.gradients());
}

TEST_CASE("a split backward pass has the bits of the whole one, however late its second half",
          "[stage]") {
  const Architecture config = config_of(each_variant());
  ParallelHooks hooks;
  Model fused(config, model::all_units(config), options_for(sequences, tokens), hooks);
  StageOptions options = options_for(sequences, tokens, 2);
  options.backward = StageOptions::Backward::split;
  Model split(config, model::all_units(config), options, hooks);
  const OwnedBatch first(config, sequences, tokens, 1);
  const OwnedBatch second(config, sequences, tokens, 2);
  train(fused, 0, first);
  train(fused, 0, second);
  split.stage->forward_train(0, first.view(), scale, stream);
  split.stage->forward_train(1, second.view(), scale, stream);
  split.stage->backward_input(0, stream);
  split.stage->backward_input(1, stream);
  split.stage->backward_weight(0, Gradients::partial, stream);
  split.stage->backward_weight(1, Gradients::complete, stream);
  CHECK(fused.gradients() == split.gradients());
}

TEST_CASE("a model cut into three stages has the bits of the whole", "[stage]") {
  const Variant variant = each_variant();
  const Architecture config = config_of(variant);
  ParallelHooks hooks;
  const StageOptions options = options_for(sequences, tokens);
  Model whole(config, model::all_units(config), options, hooks);
  std::vector<std::unique_ptr<Model>> parts;
  for (const UnitRange units : {UnitRange{0, 2}, UnitRange{2, 4}, UnitRange{4, 5}}) {
    parts.push_back(std::make_unique<Model>(config, units, options, hooks));
  }
  const OwnedBatch batch(config, sequences, tokens, 1);
  train(whole, 0, batch);
  const auto hand_over = [](TensorView from, TensorView to) {
    REQUIRE(from.shape() == to.shape());
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
  CHECK(whole.losses() == parts.back()->losses());
  for (const auto& part : parts) {
    for (const Parameter& mine : part->parameters) {
      const Parameter& reference = whole.parameters.at(mine.spec.name);
      if (config.tie_embeddings && mine.spec.name == "embedding.token.weight") {
        continue;  // two shares, below
      }
      CAPTURE(mine.spec.name);
      CHECK(std::equal(mine.gradient.as<float>(), mine.gradient.as<float>() + mine.flat.count,
                       reference.gradient.as<float>()));
    }
  }
  if (config.tie_embeddings) {
    const auto share = [&](const Model& model) {
      return model.parameters.at("embedding.token.weight").gradient.as<float>();
    };
    const Parameter& reference = whole.parameters.at("embedding.token.weight");
    for (std::int64_t i = 0; i < reference.flat.count; ++i) {
      CHECK_THAT(share(*parts.front())[i] + share(*parts.back())[i],
                 WithinAbs(reference.gradient.as<float>()[i], 1e-6));
    }
  }
}

TEST_CASE("a stage for evaluation has the bits of one for training", "[stage]") {
  const Architecture config = config_of(each_variant());
  ParallelHooks hooks;
  Model trained(config, model::all_units(config), options_for(sequences, tokens), hooks);
  StageOptions options = options_for(sequences, tokens);
  options.purpose = StageOptions::Purpose::evaluate;
  Model lean(config, model::all_units(config), options, hooks);
  const OwnedBatch batch(config, sequences, tokens, 1);
  trained.stage->forward_evaluate(0, batch.view(), stream);
  lean.stage->forward_evaluate(0, batch.view(), stream);
  CHECK(trained.losses() == lean.losses());
  CHECK(lean.arena.bytes(device::MemoryUse::activations) <
        trained.arena.bytes(device::MemoryUse::activations));
  // The loss belongs to the logits.
  const TensorView logits = lean.stage->logits(0);
  const auto* row = logits.as<float>();
  double exponentials = 0;
  for (std::int64_t i = 0; i < logits.dim(1); ++i) {
    exponentials += std::exp(static_cast<double>(row[i]));
  }
  const std::int32_t target = batch.view().target_N.as<std::int32_t>()[0];
  REQUIRE(target >= 0);
  CHECK_THAT(lean.losses()[0], WithinRel(std::log(exponentials) - row[target], 1e-5));
}

TEST_CASE("a short micro-batch is the front of a long one; predict gives one row's logits",
          "[stage]") {
  const Architecture config = config_of(each_variant());
  ParallelHooks hooks;
  Model model(config, model::all_units(config), options_for(sequences, tokens), hooks);
  const OwnedBatch whole(config, 1, tokens, 1);
  model.stage->forward_evaluate(0, whole.view(), stream);
  const TensorView logits = model.stage->logits(0);
  const auto vocab = static_cast<std::size_t>(config.vocab);
  const std::vector<float> expected(logits.as<float>(), logits.as<float>() + logits.elements());
  for (const std::int64_t length : {1, 4, 7}) {
    model::Batch prompt = whole.view();
    prompt.tokens = length;
    prompt.token_N = prompt.token_N.rows(0, length);
    prompt.position_N = prompt.position_N.rows(0, length);
    prompt.target_N = {};
    const TensorView last = model.stage->predict(prompt, length - 1, stream);
    REQUIRE(last.elements() == config.vocab);
    for (std::size_t i = 0; i < vocab; ++i) {
      CHECK_THAT(last.as<float>()[i],
                 WithinAbs(expected[static_cast<std::size_t>(length - 1) * vocab + i], 2e-5));
    }
  }
}

TEST_CASE("dropout is drawn from seed, step and sample, and evaluation has none", "[stage]") {
  const Architecture config = small(GENERATE(Family::gpt2, Family::llama), 0.3);
  ParallelHooks hooks;
  Model model(config, model::all_units(config), options_for(sequences, tokens), hooks);
  const auto losses_of = [&](const model::Batch& batch) {
    model.stage->forward_train(0, batch, scale, stream);
    return model.losses();
  };
  const OwnedBatch batch(config, sequences, tokens, 1);
  const std::vector<float> drawn = losses_of(batch.view());
  CHECK(losses_of(batch.view()) == drawn);
  CHECK(losses_of(OwnedBatch(config, sequences, tokens, 1, 4).view()) != drawn);
  const std::vector<std::int64_t> other_samples(sequences * tokens, 77);
  model::Batch resampled = batch.view();
  resampled.sample_N = {other_samples.data(), fourfold::Shape{sequences * tokens}};
  CHECK(losses_of(resampled) != drawn);
  model.stage->forward_evaluate(0, batch.view(), stream);
  const std::vector<float> undropped = model.losses();
  CHECK(undropped != drawn);
  resampled.step = 9;
  model.stage->forward_evaluate(0, resampled, stream);
  CHECK(model.losses() == undropped);
}

TEST_CASE("gradients with dropout are slopes of the loss", "[stage]") {
  const Architecture config = small(GENERATE(Family::gpt2, Family::llama), 0.3, false);
  ParallelHooks hooks;
  Model model(config, model::all_units(config), options_for(sequences, tokens), hooks);
  const OwnedBatch batch(config, sequences, tokens, 1);
  const auto loss = [&] {
    model.stage->forward_train(0, batch.view(), 1, stream);
    return sum(model.losses());
  };
  loss();
  model.stage->backward(0, Gradients::complete, stream);
  for (const std::string name :
       {"embedding.token.weight", "layers.0.attn.v_proj.weight", "layers.1.attn.o_proj.weight",
        "layers.1.mlp.down_proj.weight", "layers.2.mlp.up_proj.weight", "final_norm.weight"}) {
    CAPTURE(name);
    const Parameter& parameter = model.parameters.at(name);
    auto* weight = parameter.weight.as<float>();
    const auto* gradient = parameter.gradient.as<float>();
    // Along the gradient itself the slope is its norm.
    double squares = 0;
    for (std::int64_t i = 0; i < parameter.flat.count; ++i) {
      squares += static_cast<double>(gradient[i]) * gradient[i];
    }
    const double norm = std::sqrt(squares);
    const std::vector<float> start(weight, weight + parameter.flat.count);
    const auto loss_at = [&](double distance) {
      for (std::int64_t i = 0; i < parameter.flat.count; ++i) {
        weight[i] =
            static_cast<float>(start[static_cast<std::size_t>(i)] + distance * gradient[i] / norm);
      }
      return loss();
    };
    constexpr double distance = 5e-3;
    const double slope = (loss_at(distance) - loss_at(-distance)) / (2 * distance);
    loss_at(0);
    CHECK_THAT(slope, WithinRel(norm, 5e-3));
  }
}

TEST_CASE("16 bits stay near f32", "[stage]") {
  const Architecture config = config_of(each_variant());
  const DType compute = GENERATE(DType::bf16, DType::f16);
  CAPTURE(fourfold::name(compute));
  ParallelHooks hooks;
  Model exact(config, model::all_units(config), options_for(sequences, tokens), hooks);
  Model rounded(config, model::all_units(config), options_for(sequences, tokens), hooks, compute);
  const OwnedBatch batch(config, sequences, tokens, 1);
  train(exact, 0, batch);
  train(rounded, 0, batch);
  const bool is_f16 = compute == DType::f16;
  CHECK_THAT(sum(rounded.losses()), WithinRel(sum(exact.losses()), is_f16 ? 0.002 : 0.02));
  const std::vector<float> a = exact.gradients();
  const std::vector<float> b = rounded.gradients();
  double product = 0;
  double squares_a = 0;
  double squares_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    product += static_cast<double>(a[i]) * b[i];
    squares_a += static_cast<double>(a[i]) * a[i];
    squares_b += static_cast<double>(b[i]) * b[i];
  }
  CHECK(product / std::sqrt(squares_a * squares_b) > (is_f16 ? 0.99998 : 0.998));
}
