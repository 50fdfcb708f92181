// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// A head in chunks of rows against the head in one piece: losses, gradients, what is refused.
#include "small_models.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

using Catch::Matchers::WithinAbs;
using fourfold::DType;
using fourfold::TensorView;
using fourfold::model::Architecture;
using fourfold::model::Family;
using fourfold::model::Gradients;
using fourfold::model::ParallelHooks;
using fourfold::model::Parameter;
using fourfold::model::StageOptions;
using fourfold::model_test::Model;
using fourfold::model_test::options_for;
using fourfold::model_test::OwnedBatch;
using fourfold::model_test::small;

namespace device = fourfold::device;
namespace model = fourfold::model;

using namespace fourfold::model_test::usual;

namespace {

StageOptions options(int head_chunks,
                     StageOptions::Backward backward = StageOptions::Backward::fused) {
  StageOptions result = options_for(sequences, tokens, 3);
  result.head_chunks = head_chunks;
  result.backward = backward;
  return result;
}

/// Fourteen rows, then eight, then three: fewer than most chunks have.
std::vector<OwnedBatch> shrinking_batches(const Architecture& config) {
  std::vector<OwnedBatch> batches;
  batches.emplace_back(config, sequences, tokens, 1);
  batches.emplace_back(config, sequences, tokens - 3, 2);
  batches.emplace_back(config, 1, 3, 3);
  return batches;
}

/// Three micro-batches in flight at once; the gradients stay in the model. Returns the losses.
std::vector<float> three_in_flight(Model& model, const std::vector<OwnedBatch>& batches,
                                   bool split) {
  for (int i = 0; i < 3; ++i) {
    model.stage->forward_train(i, batches[static_cast<std::size_t>(i)].view(), scale, stream);
  }
  std::vector<float> result;
  for (const int i : {1, 0, 2}) {
    if (split) {
      model.stage->backward_input(i, stream);
    } else {
      model.stage->backward(i, i == 2 ? Gradients::complete : Gradients::partial, stream);
    }
    const std::vector<float> losses = model.losses(i);
    result.insert(result.end(), losses.begin(), losses.end());
  }
  for (int i = 0; split && i < 3; ++i) {
    model.stage->backward_weight(i, i == 2 ? Gradients::complete : Gradients::partial, stream);
  }
  return result;
}

/// The largest difference, as a share of the largest of `expected`.
double worst_error(const float* got, const float* expected, std::int64_t count) {
  double largest = 0;
  double difference = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(expected[i])));
    difference = std::max(difference, std::abs(static_cast<double>(got[i]) - expected[i]));
  }
  return largest > 1e-7 ? difference / largest : difference;  // k_proj.bias of gpt2 is zero
}

void check_gradients(const Model& got, const Model& expected, double tolerance) {
  for (const Parameter& parameter : got.parameters) {
    CAPTURE(parameter.spec.name);
    const Parameter& other = expected.parameters.at(parameter.spec.name);
    CHECK(worst_error(parameter.gradient.as<float>(), other.gradient.as<float>(),
                      parameter.flat.count) <= tolerance);
  }
}

}  // namespace

TEST_CASE("a head in chunks computes what it does in one piece", "[head_chunks]") {
  const Family family = GENERATE(Family::gpt2, Family::llama);
  const bool tied = GENERATE(false, true);
  const auto backward = GENERATE(StageOptions::Backward::fused, StageOptions::Backward::split);
  const bool split = backward == StageOptions::Backward::split;
  const DType compute = GENERATE(DType::f32, DType::bf16, DType::f16);
  const Architecture config = small(family, 0.2, tied);
  const double tolerance = compute == DType::f32 ? 1e-5 : compute == DType::f16 ? 2e-3 : 2e-2;
  ParallelHooks hooks;
  const std::vector<OwnedBatch> batches = shrinking_batches(config);
  Model whole(config, model::all_units(config), options(1, backward), hooks, compute);
  const std::vector<float> losses = three_in_flight(whole, batches, split);
  CHECK(!whole.stage->finds_loss_backward());
  for (const int chunks : {2, 3, 5, 14}) {  // of 7, 5, 3 and 1 of fourteen rows
    CAPTURE(model::name(family), tied, split, fourfold::name(compute), chunks);
    Model cut(config, model::all_units(config), options(chunks, backward), hooks, compute);
    CHECK(cut.stage->finds_loss_backward());
    const std::vector<float> cut_losses = three_in_flight(cut, batches, split);
    REQUIRE(cut_losses.size() == losses.size());
    CHECK(worst_error(cut_losses.data(), losses.data(), static_cast<std::int64_t>(losses.size())) <=
          tolerance);
    check_gradients(cut, whole, tolerance);
  }
}

TEST_CASE("a head in chunks evaluates and predicts as in one piece", "[head_chunks]") {
  const Family family = GENERATE(Family::gpt2, Family::llama);
  const auto purpose = GENERATE(StageOptions::Purpose::train, StageOptions::Purpose::evaluate);
  const Architecture config = small(family, 0.2);
  ParallelHooks hooks;
  Model whole(config, model::all_units(config), options(1), hooks);
  StageOptions in_chunks = options(4);
  in_chunks.purpose = purpose;
  Model cut(config, model::all_units(config), in_chunks, hooks);
  for (const OwnedBatch& batch : shrinking_batches(config)) {
    whole.stage->forward_evaluate(0, batch.view(), stream);
    cut.stage->forward_evaluate(0, batch.view(), stream);
    const std::vector<float> expected = whole.losses();
    const std::vector<float> got = cut.losses();
    REQUIRE(got.size() == expected.size());
    CHECK(worst_error(got.data(), expected.data(), static_cast<std::int64_t>(got.size())) <= 1e-5);
    CHECK(*std::ranges::max_element(got) > 1);
  }
  const OwnedBatch prompt(config, 1, 5, 4);
  const auto row = [&](Model& model) {
    const TensorView logits = model.stage->predict(prompt.view(), 3, stream);
    return std::vector<float>(logits.as<float>(), logits.as<float>() + logits.elements());
  };
  CHECK(row(cut) == row(whole));
}

TEST_CASE("an evaluation between two passes of other slots leaves a head in chunks alone",
          "[head_chunks]") {
  const Architecture config = small(Family::gpt2, 0.2);
  ParallelHooks hooks;
  Model undisturbed(config, model::all_units(config), options(3), hooks);
  Model disturbed(config, model::all_units(config), options(3), hooks);
  const std::vector<OwnedBatch> batches = shrinking_batches(config);
  for (Model* model : {&undisturbed, &disturbed}) {
    model->stage->forward_train(1, batches[0].view(), scale, stream);
    if (model == &disturbed) {
      model->stage->forward_evaluate(0, batches[1].view(), stream);
    }
    model->stage->backward(1, Gradients::complete, stream);
  }
  CHECK(disturbed.gradients() == undisturbed.gradients());
  CHECK(disturbed.losses(1) == undisturbed.losses(1));
}
