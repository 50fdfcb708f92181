// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/model/architecture.hpp>
#include <fourfold/model/parameter_table.hpp>
#include <fourfold/model/presets.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <functional>
#include <string>
#include <vector>

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinRel;
using fourfold::ExitCode;
using fourfold::UserError;
using fourfold::model::Architecture;
using fourfold::model::Family;
using fourfold::model::RopeScaling;

namespace model = fourfold::model;

namespace {

/// The message with which the configuration is refused; fails when it is not, or with another code.
std::string refusal(const std::function<void(Architecture&)>& change,
                    Family family = Family::gpt2) {
  Architecture config;
  set_family(config, family);
  config.attention.kv_heads = 4;
  change(config);
  try {
    (void)config.resolved();
  } catch (const UserError& error) {
    CHECK(error.code() == ExitCode::config);
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("presets have the published numbers of parameters", "[architecture]") {
  // As the published checkpoints count them.
  CHECK(model::parameter_count(model::preset("gpt2-124m")) == 124'439'808);
  CHECK(model::parameter_count(model::preset("gpt2-350m")) == 354'823'168);
  CHECK(model::parameter_count(model::preset("gpt2-774m")) == 774'030'080);
  CHECK(model::parameter_count(model::preset("gpt2-1558m")) == 1'557'611'200);
  CHECK(model::parameter_count(model::preset("llama-15m")) == 15'191'712);
  CHECK(model::parameter_count(model::preset("llama-2-7b")) == 6'738'415'616);
  CHECK(model::parameter_count(model::preset("llama-3-8b")) == 8'030'261'248);
  CHECK(model::parameter_count(model::preset("llama-3.1-8b")) == 8'030'261'248);
  CHECK(model::parameter_count(model::preset("llama-3.2-1b")) == 1'235'814'400);
  CHECK(model::preset_names().size() == 9);
}

TEST_CASE("an unknown preset is named with the nearest one", "[architecture]") {
  CHECK_THROWS_WITH(model::preset("gpt2-124M"), ContainsSubstring("did you mean \"gpt2-124m\"?"));
  CHECK_THROWS_WITH(model::preset("mamba"), ContainsSubstring("known are gpt2-124m, "));
}

TEST_CASE("flops per token follow 6 N + 6 L h T", "[architecture]") {
  const Architecture gpt2 = model::preset("gpt2-124m");
  // Products of 12 blocks of 12 h^2 and the head of V h.
  const double products = 12.0 * 12 * 768 * 768 + 50257.0 * 768;
  CHECK(static_cast<double>(model::product_parameter_count(gpt2)) == products);
  CHECK_THAT(model::flops_per_token(gpt2, 1024),
             WithinRel(6 * products + 6.0 * 12 * 768 * 1024, 1e-12));
  // One block of Llama-3-8B has 218.1 M product parameters.
  const Architecture llama = model::preset("llama-3-8b");
  const std::int64_t head = llama.vocab * llama.hidden;
  CHECK((model::product_parameter_count(llama) - head) / llama.layers == 218'103'808);
}

TEST_CASE("resolved fills in what is derived", "[architecture]") {
  const Architecture gpt2 = Architecture{}.resolved();
  CHECK(gpt2.attention.kv_heads == 12);
  CHECK(gpt2.attention.head_dim == 64);
  CHECK(gpt2.feed_forward.width == 3072);
  Architecture llama;
  set_family(llama, Family::llama);
  CHECK(llama.resolved().feed_forward.width == 2048);
  llama.hidden = 100;
  llama.attention.heads = 7;
  llama.attention.head_dim = 6;  // heads * head_dim need not be hidden
  llama.feed_forward.width = 33;
  CHECK(llama.resolved().feed_forward.width == 33);
  CHECK(llama.resolved().resolved() == llama.resolved());
}

TEST_CASE("what is frozen is named by patterns, and refused where it cannot be", "[architecture]") {
  Architecture config;
  config.layers = 2;
  config.frozen = {"embedding.*", "layers.1.attn.[qkv]_proj.*"};
  config = config.resolved();
  int frozen = 0;
  for (const model::ParameterSpec& spec : model::parameter_table(config)) {
    CAPTURE(spec.name);
    const bool named =
        spec.name.starts_with("embedding.") ||
        (spec.name.starts_with("layers.1.attn.") && spec.name.find("o_proj") == std::string::npos);
    CHECK(spec.is_trainable() == !named);
    CHECK((spec.is_trainable() || !spec.decay));
    frozen += named ? 1 : 0;
  }
  CHECK(frozen == 2 + 6);
  const auto refused = [](const std::vector<std::string>& names, Family family = Family::gpt2) {
    return refusal([&](Architecture& model) { model.frozen = names; }, family);
  };
  CHECK_THAT(refused({"final_norm.weigth"}),
             ContainsSubstring("model.frozen names \"final_norm.weigth\"") &&
                 ContainsSubstring("did you mean \"final_norm.weight\"?"));
  CHECK_THAT(refused({"layers.99.*"}), ContainsSubstring("embedding.token.weight, ..., "));
  CHECK_THAT(refused({""}), ContainsSubstring("model.frozen names \"\""));
  CHECK_THAT(refused({"*"}), ContainsSubstring("nothing would be trained"));
  CHECK_THAT(
      refused({"layers.0.attn.q_proj.weight"}),
      ContainsSubstring("one of layers.0.attn.q_proj.weight and layers.0.attn.k_proj.weight"));
  CHECK_THAT(refused({"*.up_proj.weight"}, Family::llama),
             ContainsSubstring("one of layers.0.mlp.gate_proj.weight and "));
  CHECK(refused({"*.up_proj.*"}) == "accepted");  // without a gate
}

TEST_CASE("impossible configurations are refused by key, with a value that works",
          "[architecture]") {
  CHECK_THAT(refusal([](Architecture& c) { c.attention.heads = 7; }),
             ContainsSubstring("model.heads = 7 does not divide model.hidden = 768") &&
                 ContainsSubstring("set heads to 6 or give head_dim"));
  CHECK_THAT(refusal([](Architecture& c) { c.attention.kv_heads = 5; }),
             ContainsSubstring("model.kv_heads = 5 does not divide model.heads = 12") &&
                 ContainsSubstring("set kv_heads to 4"));
  CHECK_THAT(refusal([](Architecture& c) { c.attention.head_dim = 63; }, Family::llama),
             ContainsSubstring("model.head_dim = 63 is odd"));
  CHECK_THAT(refusal([](Architecture& c) { c.layers = 0; }), ContainsSubstring("model.layers = 0"));
  CHECK_THAT(refusal([](Architecture& c) { c.hidden = -1; }), ContainsSubstring("model.hidden"));
  CHECK_THAT(refusal([](Architecture& c) { c.attention.heads = 0; }),
             ContainsSubstring("model.heads = 0"));
  CHECK_THAT(refusal([](Architecture& c) { c.attention.kv_heads = -2; }),
             ContainsSubstring("model.kv_heads"));
  CHECK_THAT(refusal([](Architecture& c) { c.feed_forward.width = -4; }),
             ContainsSubstring("model.ffn = -4"));
  CHECK_THAT(refusal([](Architecture& c) { c.vocab = 0; }), ContainsSubstring("model.vocab = 0"));
  CHECK_THAT(refusal([](Architecture& c) { c.vocab = 5'000'000'000; }),
             ContainsSubstring("model.vocab = 5000000000 is too large"));
  CHECK_THAT(refusal([](Architecture& c) { c.hidden = 1LL << 62; }),
             ContainsSubstring("too large"));
  CHECK_THAT(refusal([](Architecture& c) { c.context = 0; }), ContainsSubstring("model.context"));
  CHECK_THAT(refusal([](Architecture& c) { c.dropout = 1; }), ContainsSubstring("model.dropout"));
  CHECK_THAT(refusal([](Architecture& c) { c.norm.epsilon = 0; }),
             ContainsSubstring("model.norm_epsilon"));
  CHECK_THAT(refusal([](Architecture& c) { c.attention.qkv_bias = true; }),
             ContainsSubstring("model.qkv_bias"));
  CHECK_THAT(
      refusal([](Architecture& c) { c.positions.rope_scaling.kind = RopeScaling::Kind::linear; }),
      ContainsSubstring("model.rope_scaling"));
  CHECK_THAT(refusal([](Architecture& c) { c.positions.rope_theta = 0; }, Family::llama),
             ContainsSubstring("model.rope_theta"));
  CHECK_THAT(refusal(
                 [](Architecture& c) {
                   c.positions.rope_scaling = {RopeScaling::Kind::by_wavelength, 8, 4, 1, 8192};
                 },
                 Family::llama),
             ContainsSubstring("model.rope_scaling.high_freq_factor = 1"));
  CHECK_THAT(refusal(
                 [](Architecture& c) {
                   c.positions.rope_scaling = {RopeScaling::Kind::linear, 0.5, 1, 4, 1};
                 },
                 Family::llama),
             ContainsSubstring("model.rope_scaling.factor = 0.5"));
}
