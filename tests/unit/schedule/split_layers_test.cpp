// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/model/presets.hpp>
#include <fourfold/schedule/split_layers.hpp>

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

namespace fourfold::schedule {
namespace {

using Catch::Matchers::ContainsSubstring;
using Layers = std::vector<std::int64_t>;

/// hidden 1, one head, ffn chosen so that a block is as dear as the tests want.
model::Architecture plain(std::int64_t layers, std::int64_t vocab) {
  model::Architecture config;
  config.layers = layers;
  config.hidden = 4;
  config.attention.heads = 1;
  config.feed_forward.width = 16;
  config.vocab = vocab;
  config.context = 2;
  return config.resolved();
}

Layers counts(const model::Architecture& config, const LayerSplit& split) {
  Layers result;
  int begin = 0;
  const int head = static_cast<int>(config.layers) + 1;
  for (const model::UnitRange& units : split_layers(config, split)) {
    CHECK(units.begin == begin);
    begin = units.end;
    result.push_back(std::min(units.end, head) - std::max(units.begin, 1));
  }
  CHECK(begin == head + 1);
  return result;
}

std::string refusal(const model::Architecture& config, const LayerSplit& split) {
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
  const model::Architecture config = model::preset(preset);
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
}

std::string refused_list(std::int64_t layers, int stages, int chunks, const Layers& list) {
  return refusal(plain(layers, 50), {.stages = stages, .chunks = chunks, .stage_layers = list});
}

TEST_CASE("layers of stages that do not fit are told with a list that does", "[split_layers]") {
  CHECK(refused_list(6, 3, 1, {3, 0, 3}) ==
        "mesh.stage_layers = [3, 0, 3] gives stage 1 0 layers (of 6, and 0 only where the "
        "embedding or the head is); write [3, 1, 2], or leave it out");
  CHECK_THAT(refused_list(6, 2, 2, {3, 3}),
             ContainsSubstring("has 2 numbers") && ContainsSubstring("write [3, 2, 1, 0], or"));
  CHECK_THAT(refused_list(6, 2, 1, {3}), ContainsSubstring("has 1 number ("));
  CHECK_THAT(refused_list(6, 2, 1, {-1, 7}),
             ContainsSubstring("gives stage 0 -1 layers") && ContainsSubstring("write [0, 6]"));
  CHECK_THAT(refused_list(6, 2, 1, {3, 2}),
             ContainsSubstring("has the sum 5, and model.layers = 6") &&
                 ContainsSubstring("write [3, 3], or leave it out"));
  CHECK_THAT(refused_list(6, 2, 1, {6, 6}), ContainsSubstring("write [3, 3]"));
  // Left out, four stages would need a layer each.
  CHECK_THAT(refused_list(2, 4, 1, {1, 0, 0, 1}), ContainsSubstring("write [0, 1, 1, 0]"));
  CHECK_THAT(refused_list(2, 4, 1, {1, 0, 0, 1}), !ContainsSubstring("leave it out"));
  // No list at all would do.
  CHECK_THAT(refused_list(2, 5, 1, {1, 0, 0, 0, 1}), ContainsSubstring("set mesh.pp to 2 or less"));
  CHECK_THAT(refused_list(100, 100, 1, Layers(100, 0)),
             ContainsSubstring("write 100 numbers with the sum 100, or leave it out"));
}

TEST_CASE("every list that is advised is taken", "[split_layers]") {
  std::uint32_t state = 1;
  const auto below = [&](std::int64_t limit) {
    state = state * 1664525U + 1013904223U;
    return static_cast<std::int64_t>(state >> 16) % limit;
  };
  for (int i = 0; i < 500; ++i) {
    const auto stages = static_cast<int>(1 + below(7));
    const std::int64_t layers = std::max<std::int64_t>(stages - 2, 1) + below(9);
    Layers list(static_cast<std::size_t>(1 + below(8)));
    std::ranges::generate(list, [&] { return below(9) - 1; });
    const std::string told = refused_list(layers, stages, 1, list);
    if (told.empty()) {
      continue;
    }
    CAPTURE(told);
    const std::size_t begin = told.find("write [") + 7;
    std::istringstream numbers(told.substr(begin, told.find(']', begin) - begin));
    Layers advised;
    for (std::string number; std::getline(numbers, number, ',');) {
      advised.push_back(std::stoll(number));
    }
    CHECK(refused_list(layers, stages, 1, advised).empty());
  }
}

TEST_CASE("fewer layers than stages are refused with what the schedule can have",
          "[split_layers]") {
  const auto told = [](std::int64_t layers, int stages, int chunks, int least_stages,
                       int least_chunks) {
    return refusal(plain(layers, 50), {.stages = stages,
                                       .chunks = chunks,
                                       .stage_layers = {},
                                       .least_stages = least_stages,
                                       .least_chunks = least_chunks});
  };
  CHECK_THAT(told(3, 4, 1, 1, 1), ContainsSubstring("model.layers = 3") &&
                                      ContainsSubstring("set mesh.pp to 3 or less"));
  CHECK_THAT(told(7, 4, 2, 1, 1), ContainsSubstring("set mesh.pp to 3 or less"));
  CHECK_THAT(told(3, 2, 2, 1, 2), ContainsSubstring("set mesh.pp to 1"));
  CHECK_THAT(told(2, 2, 3, 1, 1), ContainsSubstring("set mesh.chunks to 1"));
  CHECK_THAT(told(5, 2, 6, 1, 1), ContainsSubstring("set mesh.chunks to 2 or less"));
  // A V has two chunks, and one layer cannot be in both.
  CHECK_THAT(told(1, 2, 2, 1, 2), ContainsSubstring("set model.layers to 4 or more"));
  CHECK_THAT(told(2, 2, 3, 1, 2), ContainsSubstring("set model.layers to 6 or more"));
  // A file has as many of both as it has.
  CHECK_THAT(told(3, 4, 1, 0, 0), ContainsSubstring("set model.layers to 4 or more, or mesh.pp to "
                                                    "1 without mesh.chunks"));
}

}  // namespace
}  // namespace fourfold::schedule
