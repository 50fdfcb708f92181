// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The models against Hugging Face transformers on PyTorch (make_goldens.py): logits, loss, the
/// gradient of every parameter, ten steps of AdamW with clipping and a weight decay mask.
#include "golden_case.hpp"
#include "shared_arena.hpp"
#include "source_folder.hpp"

#include <fourfold/base/philox.hpp>
#include <fourfold/device/arena.hpp>
#include <fourfold/device/buffer.hpp>
#include <fourfold/harness/shared_vector.hpp>
#include <fourfold/kernels/cross_entropy.hpp>
#include <fourfold/kernels/optimizer.hpp>
#include <fourfold/kernels/reduction.hpp>
#include <fourfold/model/parallel_hooks.hpp>
#include <fourfold/model/parameters.hpp>
#include <fourfold/model/presets.hpp>
#include <fourfold/model/stage.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

using Catch::Matchers::WithinRel;
using fourfold::DType;
using fourfold::PhiloxKey;
using fourfold::RandomUse;
using fourfold::Shape;
using fourfold::TensorView;
using fourfold::golden::GoldenCase;
using fourfold::golden::GoldenTensor;
using fourfold::model::Parameter;

namespace device = fourfold::device;
namespace kernels = fourfold::kernels;
namespace model = fourfold::model;

namespace {

constexpr double forward_tolerance = 1e-5;
constexpr double gradient_tolerance = 1e-4;
const device::StreamRef stream;

PhiloxKey weight_key(std::uint64_t seed, const std::string& name) {
  return fourfold::philox_key(seed, RandomUse::initial_weight,
                              fourfold::name_salt(name.data(), name.size()));
}

/// The weights of the goldens: `draw` of make_goldens.py.
void draw_weights(const model::Parameters& parameters, std::uint64_t seed) {
  for (const Parameter& parameter : parameters) {
    const std::string& name = parameter.spec.name;
    const PhiloxKey key = weight_key(seed, name);
    const float std = parameter.spec.shape.rank() == 2 ? 0.25F : 0.2F;
    const float mean = name.ends_with("norm.weight") ? 1.0F : 0.0F;
    auto* values = parameter.master.as<float>();
    for (std::int64_t i = 0; i < parameter.master.elements(); ++i) {
      values[i] = mean + std * fourfold::normal_float(key, static_cast<std::uint64_t>(i));
    }
  }
  parameters.update_weights_from_masters(stream);
}

/// Largest difference, relative to the largest expected value.
double worst_error(TensorView got, const GoldenTensor& expected) {
  REQUIRE(got.elements() == expected.shape.elements());
  double largest = 0;
  double difference = 0;
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    const double want = expected.values[i];
    largest = std::max(largest, std::abs(want));
    difference = std::max(difference, std::abs(static_cast<double>(got.as<float>()[i]) - want));
  }
  return difference / largest;
}

/// A whole model on this device with the optimizer of the goldens.
class Run {
 public:
  explicit Run(const GoldenCase& golden)
      : golden_(golden),
        parameters_(model::parameter_table(golden.config), DType::f32, arena_),
        stage_(golden.config, model::all_units(golden.config), parameters_, hooks_, arena_,
               options(golden)),
        moments_(DType::f32, parameters_.masters().shape()),
        squares_(DType::f32, parameters_.masters().shape()) {
    arena_.seal();
    draw_weights(parameters_, golden.seed);
    for (std::int64_t row = 0; row < golden.sequences * golden.tokens; ++row) {
      positions_.push_back(static_cast<std::int32_t>(row % golden.tokens));
    }
    for (const auto& numbers : golden.token) {
      token_.emplace_back(numbers.begin(), numbers.end());
    }
    for (const auto& numbers : golden.target) {
      target_.emplace_back(numbers.begin(), numbers.end());
    }
  }

  model::Batch batch(std::size_t step) const {
    const Shape rows{golden_.sequences * golden_.tokens};
    model::Batch result;
    result.sequences = golden_.sequences;
    result.tokens = golden_.tokens;
    result.token_N = {token_[step].data(), rows};
    result.target_N = {target_[step].data(), rows};
    result.position_N = {positions_.data(), rows};
    return result;
  }

  double valid_targets(std::size_t step) const {
    const auto& targets = golden_.target[step];
    return static_cast<double>(static_cast<std::ptrdiff_t>(targets.size()) -
                               std::count(targets.begin(), targets.end(), kernels::ignored_target));
  }

  double mean_loss(std::size_t step) const {
    const device::Tensor total(DType::f64, Shape{1});
    kernels::sum(stage_.loss(0), total, false, stream);
    return total.as<double>()[0] / valid_targets(step);
  }

  /// Forward and backward from zero gradients.
  void differentiate(std::size_t step) {
    parameters_.zero_gradients(stream);
    stage_.forward_train(0, batch(step), static_cast<float>(1.0 / valid_targets(step)), stream);
    stage_.backward(0, model::Gradients::complete, stream);
  }

  /// Clips and updates. @return the gradient norm before clipping
  double update(std::int64_t step) {
    const device::Tensor sum(DType::f64, Shape{1});
    const device::Tensor norm(DType::f32, Shape{1});
    const device::Tensor scale(DType::f32, Shape{1});
    kernels::sum_of_squares(parameters_.gradients(), sum, false, stream);
    kernels::clip_scale(sum, static_cast<float>(golden_.clip), 1.0F, norm, scale, stream);
    for (const model::Segment& segment : parameters_.layout().segments) {
      kernels::AdamStep adam;
      adam.lr = static_cast<float>(golden_.lr);
      adam.beta1 = static_cast<float>(golden_.beta1);
      adam.beta2 = static_cast<float>(golden_.beta2);
      adam.epsilon = static_cast<float>(golden_.epsilon);
      adam.weight_decay = segment.decay ? static_cast<float>(golden_.weight_decay) : 0.0F;
      adam.step = step;
      adam.gradient_scale = scale.as<float>();
      const auto [begin, count] = segment.flat;
      kernels::adam(adam, parameters_.masters().rows(begin, count),
                    moments_.view().rows(begin, count), squares_.view().rows(begin, count),
                    parameters_.gradients().rows(begin, count), {}, stream);
    }
    return norm.as<float>()[0];
  }

  const model::Parameters& parameters() const { return parameters_; }
  model::Stage& stage() { return stage_; }

 private:
  static model::StageOptions options(const GoldenCase& golden) {
    model::StageOptions result;
    result.sequences = golden.sequences;
    result.tokens = golden.tokens;
    return result;
  }

  const GoldenCase& golden_;
  fourfold::harness::SharedArena arena_;
  model::ParallelHooks hooks_;
  model::Parameters parameters_;
  model::Stage stage_;
  device::Tensor moments_;
  device::Tensor squares_;
  std::vector<fourfold::harness::SharedVector<std::int32_t>> token_;   ///< per step
  std::vector<fourfold::harness::SharedVector<std::int32_t>> target_;  ///< per step
  fourfold::harness::SharedVector<std::int32_t> positions_;
};

/// Elsewhere than in the sources where a bundle has brought them.
std::string golden_folder() {
  const char* const told = std::getenv("FOURFOLD_GOLDEN_FOLDER");
  return told != nullptr ? told : fourfold::harness::golden_folder();
}

GoldenCase each_case() {
  const std::string name =
      GENERATE("gpt2_odd_heads", "gpt2_untied", "gpt2_one_layer", "llama_grouped", "llama_scaled",
               "llama_linear", "llama_qkv_bias", "llama_qk_norm", "gpt2_silu", "llama_geglu_biases",
               "llama_no_rope");
  INFO(name);
  UNSCOPED_INFO(name);
  return fourfold::golden::read_golden_case(golden_folder(), name);
}

}  // namespace

TEST_CASE("both sides draw the same initial weights", "[golden]") {
  const GoldenCase golden = each_case();
  const PhiloxKey key = weight_key(golden.seed, "embedding.token.weight");
  for (std::size_t i = 0; i < golden.normal_bits.size(); ++i) {
    CHECK(std::bit_cast<std::uint32_t>(fourfold::normal_float(key, i)) == golden.normal_bits[i]);
  }
}

TEST_CASE("logits and loss are those of transformers", "[golden]") {
  const GoldenCase golden = each_case();
  Run run(golden);
  run.stage().forward_evaluate(0, run.batch(0), stream);
  CHECK(worst_error(run.stage().logits(0), golden.tensor("logits", "logits")) <= forward_tolerance);
  CHECK_THAT(run.mean_loss(0), WithinRel(golden.loss[0], forward_tolerance));
}

TEST_CASE("the gradient of every parameter is that of transformers", "[golden]") {
  const GoldenCase golden = each_case();
  Run run(golden);
  run.differentiate(0);
  CHECK_THAT(run.mean_loss(0), WithinRel(golden.loss[0], forward_tolerance));
  for (const Parameter& parameter : run.parameters()) {
    const std::string& name = parameter.spec.name;
    CAPTURE(name);
    const GoldenTensor& expected = golden.tensor("gradient", name);
    CHECK(parameter.spec.shape == expected.shape);
    if (!golden.config.positions.are_rotary() && name.ends_with("k_proj.bias")) {
      // The same for every key, so the softmax does not see it: both sides hold rounding errors.
      for (std::size_t i = 0; i < expected.values.size(); ++i) {
        CHECK(std::abs(parameter.gradient.as<float>()[i]) < 1e-6 * golden.gradient_norm[0]);
      }
      continue;
    }
    CHECK(worst_error(parameter.gradient, expected) <= gradient_tolerance);
  }
}

TEST_CASE("ten steps of AdamW with clipping and decay are those of torch.optim", "[golden]") {
  const GoldenCase golden = each_case();
  Run run(golden);
  for (std::size_t step = 0; step < golden.loss.size(); ++step) {
    CAPTURE(step);
    run.differentiate(step);
    CHECK_THAT(run.mean_loss(step), WithinRel(golden.loss[step], forward_tolerance));
    const double norm = run.update(static_cast<std::int64_t>(step) + 1);
    CHECK_THAT(norm, WithinRel(golden.gradient_norm[step], gradient_tolerance));
  }
  for (const GoldenTensor& expected : golden.tensors) {
    if (expected.kind == "final_weight") {
      CAPTURE(expected.name);
      CHECK(worst_error(run.parameters().at(expected.name).master, expected) <= gradient_tolerance);
    }
  }
}
