// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/parallel/split_layers.hpp>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace fourfold::parallel {
namespace {

using Catch::Matchers::ContainsSubstring;
using Layers = std::vector<std::int64_t>;

/// hidden 1, one head, ffn chosen so that a block is as dear as the tests want.
model::ModelConfig plain(std::int64_t layers, std::int64_t vocab) {
  model::ModelConfig config;
  config.layers = layers;
  config.hidden = 4;
  config.heads = 1;
  config.ffn = 16;
  config.vocab = vocab;
  config.context = 2;
  return config.resolved();
}

Layers counts(const model::ModelConfig& config, const LayerSplit& split) {
  Layers result;
  int begin = 0;
  const int head = static_cast<int>(config.layers) + 1;
  for (const model::Units& units : split_layers(config, split)) {
    CHECK(units.begin == begin);
    begin = units.end;
    result.push_back(std::min(units.end, head) - std::max(units.begin, 1));
  }
  CHECK(begin == head + 1);
  return result;
}

std::string refusal(const model::ModelConfig& config, const LayerSplit& split) {
  try {
    split_layers(config, split);
  } catch (const UserError& error) {
    CHECK(error.code() == ExitCode::config);
    return error.what();
  }
  return "";
}

TEST_CASE("the FLOPs of all units are those of the model", "[split_layers]") {
  const auto preset = GENERATE("gpt2-124m", "llama-3-8b", "llama-15m");
  const model::ModelConfig config = model::preset(preset);
  CHECK(pass_flops(config, model::all_units(config), 512).sum() ==
        model::flops_per_token(config, 512));
  CHECK(pass_flops(config, {0, 1}, 512).sum() == 0);
}

TEST_CASE("a head as dear as layers takes their place", "[split_layers]") {
  // A block's matrices: 4 * 4 * 4 + 2 * 4 * 16 = 192 weights, 6 * 192 + 6 * 4 * 2 = 1200 FLOPs; the
  // head 6 * 4 * vocab: 24 of 50 are one layer.
  CHECK(pass_flops(plain(2, 50), {1, 2}, 2).sum() == 1200);
  CHECK(pass_flops(plain(2, 50), {3, 4}, 2).sum() == 1200);
  CHECK(counts(plain(7, 50), {.stages = 4, .chunks = 1, .stage_layers = {}}) == Layers{2, 2, 2, 1});
  CHECK(counts(plain(6, 100), {.stages = 4, .chunks = 1, .stage_layers = {}}) ==
        Layers{2, 2, 2, 0});
  CHECK(counts(plain(8, 1), {.stages = 4, .chunks = 1, .stage_layers = {}}) == Layers{2, 2, 2, 2});
  // The largest is 3 either way: as even as can be, and later ones have more than earlier.
  CHECK(counts(plain(9, 1), {.stages = 4, .chunks = 1, .stage_layers = {}}) == Layers{2, 2, 3, 2});
  // The head is one layer: {2, 3} and {3, 2} are equally dear and even, {3, 2} gives the last
  // fewer.
  CHECK(counts(plain(4, 50), {.stages = 2, .chunks = 1, .stage_layers = {}}) == Layers{3, 1});
  CHECK(counts(plain(10, 1), {.stages = 2, .chunks = 2, .stage_layers = {}}) == Layers{2, 3, 3, 2});
  CHECK(counts(plain(11, 60), {.stages = 4, .chunks = 1, .stage_layers = {}}) ==
        Layers{3, 3, 3, 2});
  CHECK(counts(plain(5, 50), {.stages = 1, .chunks = 1, .stage_layers = {}}) == Layers{5});
  CHECK(counts(plain(5, 1), {.stages = 5, .chunks = 1, .stage_layers = {}}) ==
        Layers{1, 1, 1, 1, 1});
  // The head of GPT-2 124M is worth more than four of its layers.
  CHECK(counts(model::preset("gpt2-124m"), {.stages = 4, .chunks = 1, .stage_layers = {}}) ==
        Layers{4, 4, 4, 0});
}

TEST_CASE("no other split has a cheaper dearest stage", "[split_layers]") {
  const auto dearest = [](const Layers& layers, double head) {
    double most = 0;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      const bool last = i + 1 == layers.size();
      most = std::max(most, static_cast<double>(layers[i]) + (last ? head : 0));
    }
    return most;
  };
  for (std::int64_t layers = 3; layers <= 9; ++layers) {
    for (const std::int64_t vocab : {1, 30, 50, 75, 100, 400}) {
      const double head = static_cast<double>(vocab) / 50;
      const double ours = dearest(
          counts(plain(layers, vocab), {.stages = 3, .chunks = 1, .stage_layers = {}}), head);
      for (std::int64_t a = 1; a < layers; ++a) {
        for (std::int64_t b = 1; a + b <= layers; ++b) {
          CHECK(ours <= dearest({a, b, layers - a - b}, head));
        }
      }
    }
  }
}

TEST_CASE("layers of stages can be given", "[split_layers]") {
  CHECK(counts(plain(6, 50), {.stages = 2, .chunks = 2, .stage_layers = {0, 5, 1, 0}}) ==
        Layers{0, 5, 1, 0});
  CHECK(counts(plain(2, 50), {.stages = 4, .chunks = 1, .stage_layers = {0, 1, 1, 0}}) ==
        Layers{0, 1, 1, 0});
  CHECK_THAT(refusal(plain(6, 50), {.stages = 2, .chunks = 2, .stage_layers = {3, 3}}),
             ContainsSubstring("mesh.stage_layers = [3, 3]") && ContainsSubstring("write 4"));
  CHECK_THAT(refusal(plain(6, 50), {.stages = 3, .chunks = 1, .stage_layers = {3, 0, 3}}),
             ContainsSubstring("gives stage 1 0 layers") && ContainsSubstring("set it to 1"));
  CHECK_THAT(refusal(plain(6, 50), {.stages = 2, .chunks = 1, .stage_layers = {-1, 7}}),
             ContainsSubstring("gives stage 0 -1 layers") && ContainsSubstring("set it to 0"));
  CHECK_THAT(refusal(plain(6, 50), {.stages = 2, .chunks = 1, .stage_layers = {3, 2}}),
             ContainsSubstring("are 5 layers") && ContainsSubstring("add 1 of them"));
  CHECK_THAT(refusal(plain(6, 50), {.stages = 2, .chunks = 1, .stage_layers = {6, 6}}),
             ContainsSubstring("take away 6"));
}

TEST_CASE("fewer layers than stages are refused", "[split_layers]") {
  CHECK_THAT(
      refusal(plain(3, 50), {.stages = 4, .chunks = 1, .stage_layers = {}}),
      ContainsSubstring("model.layers = 3") && ContainsSubstring("set mesh.pp to 3 or less"));
  CHECK_THAT(refusal(plain(7, 50), {.stages = 4, .chunks = 2, .stage_layers = {}}),
             ContainsSubstring("set mesh.pp to 3 or less"));
  CHECK_THAT(refusal(plain(2, 50), {.stages = 2, .chunks = 3, .stage_layers = {}}),
             ContainsSubstring("set mesh.chunks to 1 or less"));
}

}  // namespace
}  // namespace fourfold::parallel
