// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/train/text_sampler.hpp>

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <cmath>

using fourfold::ConstTensorView;
using fourfold::train::draw_token;
using fourfold::train::pass_tokens;
using fourfold::train::SamplingOptions;

namespace {
const std::array<float, 4> logits{1.0F, 3.0F, -50.0F, 2.0F};
const ConstTensorView logits_V(logits.data(), {4});
}  // namespace

TEST_CASE("temperature zero takes the likeliest token, ties go to the lower number", "[sampler]") {
  CHECK(draw_token(logits_V, {.temperature = 0}, 0) == 1);
  const std::array<float, 3> equal{2.0F, 2.0F, 2.0F};
  CHECK(draw_token(ConstTensorView(equal.data(), {3}), {.temperature = 0}, 5) == 0);
}

TEST_CASE("tokens come as often as softmax says", "[sampler]") {
  const SamplingOptions options{.temperature = 2.0, .seed = 3};
  std::array<int, 4> counts{};
  const int draws = 20000;
  for (int draw = 0; draw < draws; ++draw) {
    ++counts.at(static_cast<std::size_t>(draw_token(logits_V, options, draw)));
  }
  const double sum = std::exp(0.5) + std::exp(1.5) + std::exp(-25.0) + std::exp(1.0);
  for (std::size_t token = 0; token < counts.size(); ++token) {
    const double expected = std::exp(static_cast<double>(logits.at(token)) / 2.0) / sum;
    CHECK(std::abs(counts.at(token) / static_cast<double>(draws) - expected) < 0.015);  // 4 sigma
  }
}

TEST_CASE("top_k leaves only the likeliest", "[sampler]") {
  const SamplingOptions options{.temperature = 100.0, .top_k = 2};
  for (int draw = 0; draw < 200; ++draw) {
    const auto token = draw_token(logits_V, options, draw);
    CHECK((token == 1 || token == 3));
  }
}

TEST_CASE("tokens that only the model has are never drawn", "[sampler]") {
  // 3 is the likeliest of the model's, 1 of the tokenizer's.
  const std::array<float, 5> rounded_up{0.0F, 1.0F, 0.5F, 9.0F, 8.0F};
  const ConstTensorView rounded_up_V(rounded_up.data(), {5});
  CHECK(draw_token(rounded_up_V, {.temperature = 0, .vocab = 3}, 0) == 1);
  CHECK(draw_token(rounded_up_V, {.temperature = 0, .vocab = 4}, 0) == 3);
  for (const std::int64_t top_k : {0, 2, 5}) {
    for (int draw = 0; draw < 200; ++draw) {
      CHECK(draw_token(rounded_up_V, {.temperature = 5, .top_k = top_k, .vocab = 3}, draw) < 3);
    }
  }
  // A tokenizer that has more than the model takes nothing away.
  CHECK(draw_token(rounded_up_V, {.temperature = 0, .vocab = 500}, 0) == 3);
}

TEST_CASE("the same seed and draw give the same token", "[sampler]") {
  const SamplingOptions one{.seed = 1};
  const SamplingOptions other{.seed = 2};
  bool differs = false;
  for (int draw = 0; draw < 50; ++draw) {
    CHECK(draw_token(logits_V, one, draw) == draw_token(logits_V, one, draw));
    differs = differs || draw_token(logits_V, one, draw) != draw_token(logits_V, other, draw);
  }
  CHECK(differs);
}

TEST_CASE("a device sees few lengths, a host no token too many", "[sampler]") {
  CHECK(pass_tokens(1, 1024, false) == 1);
  CHECK(pass_tokens(65, 1024, false) == 65);
  CHECK(pass_tokens(1, 1024, true) == 64);
  CHECK(pass_tokens(64, 1024, true) == 64);
  CHECK(pass_tokens(65, 1024, true) == 128);
  CHECK(pass_tokens(1000, 1000, true) == 1000);
  CHECK(pass_tokens(961, 1000, true) == 1000);
}
