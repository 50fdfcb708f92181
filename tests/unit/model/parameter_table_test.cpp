// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "small_architecture.hpp"

#include <fourfold/model/parameter_table.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>

#include <set>
#include <string>
#include <vector>

using fourfold::Shape;
using fourfold::model::Architecture;
using fourfold::model::Family;
using fourfold::model::Init;
using fourfold::model::ParameterSpec;

namespace model = fourfold::model;

namespace {

std::vector<std::string> names(const std::vector<ParameterSpec>& table) {
  std::vector<std::string> result;
  result.reserve(table.size());
  for (const ParameterSpec& spec : table) {
    result.push_back(spec.name);
  }
  return result;
}

Architecture small(Family family) {
  return fourfold::model_test::small_model({.family = family,
                                            .layers = 1,
                                            .hidden = 20,
                                            .heads = 5,
                                            .kv_heads = family == Family::llama ? 1 : 5,
                                            .ffn = 30,
                                            .vocab = 17,
                                            .context = 9,
                                            .tied = family == Family::gpt2});
}

const ParameterSpec& find(const std::vector<ParameterSpec>& table, const std::string& name) {
  for (const ParameterSpec& spec : table) {
    if (spec.name == name) {
      return spec;
    }
  }
  FAIL("no parameter " << name);
  return table.front();
}

}  // namespace

TEST_CASE("a GPT-2 has these parameters", "[parameter_table]") {
  CHECK(names(model::parameter_table(small(Family::gpt2))) ==
        std::vector<std::string>{"embedding.token.weight",
                                 "embedding.position.weight",
                                 "layers.0.attn_norm.weight",
                                 "layers.0.attn_norm.bias",
                                 "layers.0.attn.q_proj.weight",
                                 "layers.0.attn.q_proj.bias",
                                 "layers.0.attn.k_proj.weight",
                                 "layers.0.attn.k_proj.bias",
                                 "layers.0.attn.v_proj.weight",
                                 "layers.0.attn.v_proj.bias",
                                 "layers.0.attn.o_proj.weight",
                                 "layers.0.attn.o_proj.bias",
                                 "layers.0.mlp_norm.weight",
                                 "layers.0.mlp_norm.bias",
                                 "layers.0.mlp.up_proj.weight",
                                 "layers.0.mlp.up_proj.bias",
                                 "layers.0.mlp.down_proj.weight",
                                 "layers.0.mlp.down_proj.bias",
                                 "final_norm.weight",
                                 "final_norm.bias"});
}

TEST_CASE("an untied Llama has these parameters, with these shapes", "[parameter_table]") {
  const auto table = model::parameter_table(small(Family::llama));
  CHECK(names(table) ==
        std::vector<std::string>{"embedding.token.weight", "layers.0.attn_norm.weight",
                                 "layers.0.attn.q_proj.weight", "layers.0.attn.k_proj.weight",
                                 "layers.0.attn.v_proj.weight", "layers.0.attn.o_proj.weight",
                                 "layers.0.mlp_norm.weight", "layers.0.mlp.gate_proj.weight",
                                 "layers.0.mlp.up_proj.weight", "layers.0.mlp.down_proj.weight",
                                 "final_norm.weight", "lm_head.weight"});
  CHECK(find(table, "layers.0.attn.q_proj.weight").shape == Shape{20, 20});
  CHECK(find(table, "layers.0.attn.k_proj.weight").shape == Shape{4, 20});
  CHECK(find(table, "layers.0.mlp.down_proj.weight").shape == Shape{20, 30});
  CHECK(find(table, "lm_head.weight").shape == Shape{17, 20});
  Architecture qwen = small(Family::llama);
  qwen.attention.qkv_bias = true;
  CHECK(model::parameter_table(qwen).size() == table.size() + 3);
  Architecture normed = small(Family::llama);
  normed.attention.qk_norm = true;
  const auto with_norms = model::parameter_table(normed);
  CHECK(with_norms.size() == table.size() + 2);
  for (const char* const name : {"layers.0.attn.q_norm.weight", "layers.0.attn.k_norm.weight"}) {
    const ParameterSpec& spec = find(with_norms, name);
    CHECK(spec.shape == Shape{4});
    CHECK(spec.is_vector());
    CHECK(spec.init == Init::ones);
    CHECK_FALSE(spec.decay);
    CHECK_FALSE(spec.cut);  // all heads of a model have the same
    CHECK(spec.partial == model::PartialGradient::over_heads);  // whatever rows a rank has
  }
}

TEST_CASE("matrices decay, norms and biases do not", "[parameter_table]") {
  for (const Family family : {Family::gpt2, Family::llama}) {
    for (const ParameterSpec& spec : model::parameter_table(small(family))) {
      CAPTURE(spec.name);
      CHECK(spec.decay == (spec.shape.rank() == 2));
      CHECK((spec.init == Init::normal) == (spec.shape.rank() == 2));
      CHECK((spec.init == Init::zeros) == spec.name.ends_with(".bias"));
    }
  }
}

TEST_CASE("what a parameter is, is said of it", "[parameter_table]") {
  using model::ParameterKind;
  const auto table = model::parameter_table(small(Family::gpt2));
  CHECK(find(table, "embedding.token.weight").is_token_embedding());
  CHECK(find(table, "embedding.position.weight").kind == ParameterKind::embedding);
  CHECK_FALSE(find(table, "embedding.position.weight").is_token_embedding());
  CHECK(find(table, "layers.0.mlp.up_proj.weight").kind == ParameterKind::matrix);
  CHECK(find(table, "layers.0.mlp.up_proj.bias").is_vector());
  const auto untied = model::parameter_table(small(Family::llama));
  CHECK(find(untied, "lm_head.weight").kind == ParameterKind::matrix);
  CHECK(find(untied, "lm_head.weight").cut == find(untied, "embedding.token.weight").cut);
  // Rules for hidden matrices are for the products between the embedding and the head alone.
  for (const model::ParameterSpec& spec : untied) {
    CAPTURE(spec.name);
    CHECK((spec.group == model::OptimizerGroup::hidden_matrices) ==
          (spec.name.starts_with("layers.") && spec.shape.rank() == 2));
  }
}

TEST_CASE("projections into the residual stream start smaller", "[parameter_table]") {
  Architecture config = small(Family::gpt2);
  config.layers = 8;
  const auto table = model::parameter_table(config);
  CHECK(find(table, "layers.7.attn.o_proj.weight").init_std == 0.005F);  // 0.02 / sqrt(16)
  CHECK(find(table, "layers.0.mlp.down_proj.weight").init_std == 0.005F);
  CHECK(find(table, "layers.0.mlp.up_proj.weight").init_std == 0.02F);
  CHECK(find(table, "embedding.position.weight").init_std == 0.02F);
}

TEST_CASE("stages share out the parameters; a tied head brings a copy of the embedding",
          "[parameter_table]") {
  Architecture config = small(Family::gpt2);
  config.layers = 3;
  const auto whole = model::parameter_table(config);
  CHECK(model::parameter_table(config, model::all_units(config)) == whole);
  const auto first = model::parameter_table(config, {0, 2});
  const auto middle = model::parameter_table(config, {2, 4});
  const auto last = model::parameter_table(config, {4, 5});
  CHECK(first.size() + middle.size() + last.size() == whole.size() + 1);
  CHECK(names(last) ==
        std::vector<std::string>{"final_norm.weight", "final_norm.bias", "embedding.token.weight"});
  CHECK(last.back().unit == 4);
  CHECK(first.front().unit == 0);
  config.tie_embeddings = false;
  CHECK(names(model::parameter_table(config, {4, 5})).back() == "lm_head.weight");
}
