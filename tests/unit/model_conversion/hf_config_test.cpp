// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "models.hpp"
#include "scratch_folder.hpp"
#include "small_architecture.hpp"
#include "source_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/model/presets.hpp>
#include <fourfold/model_conversion/external_tensor.hpp>
#include <fourfold/model_conversion/hf_config.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fmt/format.h>

#include <string>

using Catch::Matchers::ContainsSubstring;
using fourfold::DType;
using fourfold::ExitCode;
using fourfold::UserError;
using fourfold::harness::read_bytes;
using fourfold::kernels::Activation;
using fourfold::model::Architecture;
using fourfold::model::Family;
using fourfold::model::RopeScaling;
using fourfold::model_conversion::hf_config_json;
using fourfold::model_conversion::HfModel;
using fourfold::model_conversion::parse_hf_config;
using fourfold::model_test::small_model;

namespace {

Architecture golden(const std::string& name) {
  const std::string path = fourfold::harness::golden_folder() + "/hf/" + name + "/config.json";
  return parse_hf_config(read_bytes(path), path).config;
}

std::string refusal(const std::string& text, ExitCode code = ExitCode::config) {
  try {
    parse_hf_config(text, "config.json");
  } catch (const UserError& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  return "accepted";
}

std::string gpt2(const std::string& more) {
  return R"({"model_type":"gpt2","vocab_size":50257,"n_positions":1024,"n_embd":768,"n_layer":12,)"
         R"("n_head":12)" +
         more + "}";
}

std::string llama(const std::string& more) {
  return R"({"model_type":"llama","vocab_size":32000,"max_position_embeddings":4096,)"
         R"("hidden_size":4096,"num_hidden_layers":32,"num_attention_heads":32,)"
         R"("intermediate_size":11008)" +
         more + "}";
}

}  // namespace

TEST_CASE("the models of make_goldens.py, as transformers 5 describes them") {
  CHECK(
      golden("gpt2_odd_heads") ==
      small_model({.layers = 2, .hidden = 15, .heads = 3, .ffn = 60, .vocab = 31, .context = 12}));
  CHECK(golden("gpt2_one_layer").norm.epsilon == 1e-3);
  CHECK(!golden("gpt2_untied").tie_embeddings);
  CHECK(golden("llama_grouped") == small_model({.family = Family::llama,
                                                .layers = 2,
                                                .hidden = 30,
                                                .heads = 3,
                                                .kv_heads = 1,
                                                .head_dim = 10,
                                                .ffn = 23,
                                                .vocab = 33,
                                                .context = 11,
                                                .tied = false}));
  const Architecture scaled = golden("llama_scaled");
  CHECK(scaled.positions.rope_theta == 100);
  CHECK(scaled.positions.rope_scaling == RopeScaling{.kind = RopeScaling::Kind::by_wavelength,
                                                     .factor = 8,
                                                     .low_freq_factor = 1,
                                                     .high_freq_factor = 4,
                                                     .original_context = 32});
  CHECK(scaled.tie_embeddings);
  CHECK(golden("llama_linear").positions.rope_scaling.kind == RopeScaling::Kind::linear);
  CHECK(golden("llama_linear").positions.rope_scaling.factor == 2.5);
  CHECK(golden("llama_qkv_bias").attention.qkv_bias);
  CHECK(golden("llama_qk_norm").attention.qk_norm);
  CHECK(golden("gpt2_silu").feed_forward.activation == Activation::silu);
  CHECK(golden("llama_geglu_biases").feed_forward.activation == Activation::gelu_tanh);
  CHECK(golden("llama_geglu_biases").biases);
  CHECK(golden("llama_no_rope").positions.no_rope_interval == 2);
}

TEST_CASE("config.json of the models of the world, as transformers 4 wrote them") {
  const HfModel gpt = parse_hf_config(
      gpt2(R"(,"n_ctx":1024,"resid_pdrop":0.1,"embd_pdrop":0.1,"attn_pdrop":0.1,)"
           R"("architectures":["GPT2LMHeadModel"],"task_specific_params":{"a":{"b":[1]}})"),
      "c");
  Architecture expected = fourfold::model::preset("gpt2-124m");
  expected.dropout = 0.1;
  CHECK(gpt.config == expected);
  REQUIRE(gpt.notes.size() == 1);
  CHECK_THAT(gpt.notes[0], ContainsSubstring("attn_pdrop = 0.1"));
  CHECK(parse_hf_config(llama(R"(,"rms_norm_eps":1e-05,"rope_scaling":null,"head_dim":null)"), "c")
            .config == fourfold::model::preset("llama-2-7b"));
  const std::string text = llama(
      R"(,"rope_theta":500000.0,"rope_scaling":{"factor":8.0,"low_freq_factor":1.0,)"
      R"("high_freq_factor":4.0,"original_max_position_embeddings":8192,"rope_type":"llama3"})");
  const Architecture scaled = parse_hf_config(text, "c").config;
  CHECK(scaled.positions.rope_theta == 500000);
  CHECK(scaled.positions.rope_scaling ==
        fourfold::model::preset("llama-3.1-8b").positions.rope_scaling);
  CHECK(parse_hf_config(llama(R"(,"rope_scaling":{"type":"linear","factor":4})"), "c")
            .config.positions.rope_scaling.factor == 4);
}

TEST_CASE("what is written is read back as the same model") {
  Architecture config = GENERATE(fourfold::harness::gpt2_model(), fourfold::harness::llama_model());
  config.tie_embeddings = GENERATE(false, true);
  config.norm.epsilon = 3e-6;
  if (family_of(config) == Family::llama) {
    config.positions.rope_theta = 1234.5;
    const int kind = GENERATE(0, 1, 2, 3, 4, 5);
    config.attention.qkv_bias = kind == 1;
    config.attention.qk_norm = kind == 2;
    config.positions.no_rope_interval = kind == 3 ? 2 : kind == 4 ? 1 : 0;
    config.biases = kind == 4 || kind == 5;
    config.feed_forward.activation = kind % 2 == 0 ? Activation::silu : Activation::gelu_tanh;
    config.positions.rope_scaling.kind = GENERATE(
        RopeScaling::Kind::none, RopeScaling::Kind::linear, RopeScaling::Kind::by_wavelength);
    config.positions.rope_scaling.factor =
        config.positions.rope_scaling.kind == RopeScaling::Kind::none ? 1 : 2.5;
  } else {
    config.dropout = 0.25;
    config.feed_forward.activation = GENERATE(Activation::silu, Activation::gelu_tanh);
  }
  HfModel model = parse_hf_config(hf_config_json(config, config.vocab, DType::bf16), "c");
  if (config.positions.rope_scaling.kind != RopeScaling::Kind::by_wavelength) {
    model.config.positions.rope_scaling.original_context =
        config.positions.rope_scaling.original_context;
  }
  CHECK(model.config == config);
  CHECK(model.notes.empty());
  CHECK(parse_hf_config(hf_config_json(config, 192, DType::f16), "c").config.vocab == 192);
}

TEST_CASE("what Hugging Face's models cannot be is refused by name and value") {
  Architecture config = fourfold::harness::gpt2_model();
  config.attention.kv_heads = 1;
  CHECK_THROWS_WITH(hf_config_json(config, 131, DType::f32),
                    ContainsSubstring("model.kv_heads = 1"));
  config = fourfold::harness::gpt2_model();
  config.attention.head_dim = 7;
  CHECK_THROWS_WITH(hf_config_json(config, 131, DType::f32),
                    ContainsSubstring("model.head_dim = 7"));
  config = fourfold::harness::llama_model();
  config.attention.heads = 4;
  CHECK_THROWS_WITH(hf_config_json(config, 131, DType::f32), ContainsSubstring("model.heads = 4"));
}

TEST_CASE("traits that no class of transformers has together are refused, also as tensors") {
  const auto refused = [](const Architecture& from, const auto& change, const std::string& trait) {
    Architecture config = from;
    change(config);
    CAPTURE(trait);
    CHECK_THROWS_WITH(hf_config_json(config, 131, DType::f32),
                      ContainsSubstring(trait) && ContainsSubstring("cannot be exported"));
    CHECK_THROWS_WITH(fourfold::model_conversion::hf_tensors(config, 131, config.context),
                      ContainsSubstring(trait));
  };
  const Architecture gpt = fourfold::harness::gpt2_model();
  const Architecture llama_like = fourfold::harness::llama_model();
  using Positions = fourfold::model::PositionTraits::Kind;
  using Norms = fourfold::model::NormTraits::Kind;
  refused(
      gpt, [](Architecture& c) { c.attention.qk_norm = true; }, "qk_norm = true");
  refused(
      gpt, [](Architecture& c) { c.positions.kind = Positions::rotary; }, "\"rotary\"");
  refused(
      gpt, [](Architecture& c) { c.positions.kind = Positions::none; }, "\"none\"");
  refused(
      gpt, [](Architecture& c) { c.norm.kind = Norms::rms; }, "norm = \"rms\"");
  refused(
      gpt, [](Architecture& c) { c.feed_forward.gated = true; }, "gated = true");
  refused(
      gpt, [](Architecture& c) { c.biases = false; }, "biases = false");
  refused(
      llama_like, [](Architecture& c) { c.feed_forward.gated = false; }, "gated = false");
  refused(
      llama_like, [](Architecture& c) { c.norm.kind = Norms::layer; }, "norm = \"layer\"");
  refused(
      llama_like, [](Architecture& c) { c.attention.qkv_bias = c.attention.qk_norm = true; },
      "qkv_bias = true and qk_norm = true");
  refused(
      llama_like, [](Architecture& c) { c.biases = c.attention.qk_norm = true; }, "biases = true");
  refused(
      llama_like,
      [](Architecture& c) {
        c.attention.qk_norm = true;
        c.positions.no_rope_interval = 2;
      },
      "no_rope_interval = 2");
}

TEST_CASE("layers without positions are read as a list or as an interval") {
  const auto interval_of = [](const std::string& more) {
    std::string text = llama(more);
    text.replace(text.find("\"llama\""), 7, "\"smollm3\"");
    return parse_hf_config(text, "c").config.positions.no_rope_interval;
  };
  const auto list = [](int layers, int interval) {
    std::string text;
    for (int i = 1; i <= layers; ++i) {
      text += i % interval == 0 ? ",0" : ",1";
    }
    return R"(,"no_rope_layers":[)" + text.substr(1) + "]";
  };
  CHECK(interval_of("") == 4);
  CHECK(interval_of(R"(,"no_rope_layer_interval":3)") == 3);
  CHECK(interval_of(list(32, 5)) == 5);
  CHECK(interval_of(list(32, 1)) == 1);
  CHECK(interval_of(list(32, 33)) == 0);
  CHECK(interval_of(list(40, 4)) == 4);  // more than there are layers
  for (const std::string& odd : {list(31, 4), std::string(R"(,"no_rope_layers":[])"),
                                 std::string(R"(,"no_rope_layers":4)")}) {
    CHECK_THROWS_WITH(interval_of(odd), ContainsSubstring("no_rope_layers = "));
  }
  std::string irregular = list(32, 4);
  irregular.replace(irregular.find("1"), 1, "0");
  CHECK_THROWS_WITH(interval_of(irregular), ContainsSubstring("no_rope_layers = "));
  CHECK(parse_hf_config(R"({"model_type":"smollm3","vocab_size":9,"max_position_embeddings":8,)"
                        R"("hidden_size":8,"num_hidden_layers":1,"num_attention_heads":2,)"
                        R"("intermediate_size":8})",
                        "c")
            .config.positions.rope_theta == 2e6);
}

TEST_CASE("what we do not compute is refused by name and value") {
  const auto [text, reason] = GENERATE(table<std::string, std::string>({
      {R"({"model_type":"mixtral"})", R"(model_type = "mixtral")"},
      {"{}", "model_type = (nothing)"},
      {gpt2(R"(,"activation_function":"relu")"), R"(activation_function = "relu")"},
      {gpt2(R"(,"activation_function":"gelu")"), R"(activation_function = "gelu")"},
      {gpt2(R"(,"scale_attn_weights":false)"), "scale_attn_weights = false"},
      {gpt2(R"(,"scale_attn_by_inverse_layer_idx":true)"),
       "scale_attn_by_inverse_layer_idx = true"},
      {gpt2(R"(,"add_cross_attention":true)"), "add_cross_attention = true"},
      {gpt2(R"(,"quantization_config":{"bits":4})"), R"(quantization_config = {"bits":4})"},
      {llama(R"(,"hidden_act":"gelu")"), R"(hidden_act = "gelu")"},
      {llama(R"(,"attention_bias":true)"), "attention_bias = true"},
      {llama(R"(,"mlp_bias":true)"), "mlp_bias = true"},
      {llama(R"(,"is_causal":false)"), "is_causal = false"},
      {llama(R"(,"rope_scaling":{"type":"dynamic","factor":2})"), R"(type = "dynamic")"},
      {llama(R"(,"rope_parameters":{"rope_type":"yarn","factor":2})"), R"(rope_type = "yarn")"},
      {llama(R"(,"rope_parameters":{"rope_type":"linear"})"), "factor = (nothing)"},
      {llama(R"(,"rope_scaling":{"rope_type":"llama3","factor":8})"),
       "low_freq_factor = (nothing)"},
      {llama(R"(,"partial_rotary_factor":0.5)"), "partial_rotary_factor = 0.5"},
      {llama(R"(,"rope_parameters":{"full_attention":{"rope_theta":5}})"),
       R"(full_attention = {"rope_theta":5})"},
      {llama(R"(,"rope_scaling":{"type":"linear","factor":2,"sliding_attention":{}})"),
       "sliding_attention = {}"},
      {llama(R"(,"use_sliding_window":true)"), "use_sliding_window = true"},
      {llama(R"(,"layer_types":["full_attention","sliding_attention"])"), "layer_types = "},
      {llama(R"(,"layer_types":7)"), "layer_types = 7"},
      {llama(R"(,"num_key_value_heads":5)"), "model.kv_heads = 5"},
      {llama(R"(,"num_key_value_heads":-1)"), "num_key_value_heads = -1"},
      {llama(R"(,"num_key_value_heads":1e30)"), "num_key_value_heads = 1e+30"},
      {llama(R"(,"rms_norm_eps":"small")"), R"(rms_norm_eps = "small")"},
      {llama(R"(,"rms_norm_eps":0)"), "model.norm_epsilon = 0"},
      {llama(R"(,"rope_scaling":[])"), "rope_scaling = []"},
      {llama(R"(,"tie_word_embeddings":1)"), "tie_word_embeddings = 1"},
      {R"({"model_type":"gpt2","vocab_size":9})", "n_positions = (nothing)"},
      {R"({"model_type":"gpt2","vocab_size":"\u001b[2J"})", "vocab_size"},
  }));
  const std::string told = refusal(text);
  CHECK_THAT(told, ContainsSubstring("config.json: "));
  CHECK_THAT(told, ContainsSubstring(reason));
}

TEST_CASE("two sources of one fact have to agree, and both are named where they do not") {
  const auto [text, one, other] = GENERATE(table<std::string, std::string, std::string>({
      {llama(R"(,"rope_scaling":{"type":"yarn","factor":4.0},)"
             R"("rope_parameters":{"rope_type":"default","rope_theta":500.0})"),
       R"(rope_scaling = {"factor":4.0,"type":"yarn"})", "rope_parameters = {"},
      {llama(R"(,"rope_scaling":{"type":"linear","factor":4.0},)"
             R"("rope_parameters":{"rope_type":"linear","factor":2.0})"),
       "rope_scaling = {", R"(rope_parameters = {"factor":2.0,"rope_type":"linear"})"},
      {llama(R"(,"rope_scaling":{"type":"linear","rope_type":"default","factor":4.0})"),
       R"(rope_type = "default")", R"(type = "linear")"},
      {llama(R"(,"rope_theta":10000.0,"rope_parameters":{"rope_theta":500.0})"), "rope_theta = 500",
       "rope_theta = 10000.0"},
      {llama(R"(,"rope_scaling":{"type":"default","rope_theta":7.0},)"
             R"("rope_parameters":{"rope_theta":500.0})"),
       "rope_theta = 7.0", "rope_theta = 500.0 in rope_parameters"},
      {llama(R"(,"original_max_position_embeddings":64,"rope_scaling":{"type":"llama3",)"
             R"("factor":8,"low_freq_factor":1,"high_freq_factor":4,)"
             R"("original_max_position_embeddings":32})"),
       "original_max_position_embeddings = 64", "rope_scaling = {"},
      {llama(R"(,"architectures":["MistralForCausalLM"])"),
       R"(architectures = ["MistralForCausalLM"])", R"(model_type = "llama")"},
      {llama(R"(,"layer_types":["full_attention"])"), "layer_types = ", "num_hidden_layers = 32"},
      {gpt2(R"(,"hidden_size":1024)"), "n_embd = 768", "hidden_size = 1024"},
      {gpt2(R"(,"n_ctx":512)"), "n_positions = 1024", "n_ctx = 512"},
      {gpt2(R"(,"num_hidden_layers":24)"), "n_layer = 12", "num_hidden_layers = 24"},
      {gpt2(R"(,"num_attention_heads":6)"), "n_head = 12", "num_attention_heads = 6"},
  }));
  const std::string told = refusal(text);
  CHECK_THAT(told, ContainsSubstring(" contradicts ") && ContainsSubstring(one) &&
                       ContainsSubstring(other));
}

TEST_CASE("what is said twice and agrees is taken") {
  const std::string scaling =
      R"({"rope_type":"llama3","type":"llama3","factor":8,"low_freq_factor":1,)"
      R"("high_freq_factor":4,"rope_theta":500000.0})";
  const Architecture both = parse_hf_config(llama(R"(,"rope_theta":5e5,"rope_parameters":)" +
                                                  scaling + R"(,"rope_scaling":)" + scaling +
                                                  R"(,"architectures":["LLaMAForCausalLM"])"),
                                            "c")
                                .config;
  CHECK(both.positions.rope_theta == 500000);
  CHECK(both.positions.rope_scaling.kind == RopeScaling::Kind::by_wavelength);
  // As transformers does where the original context is not said.
  CHECK(both.positions.rope_scaling.original_context == 4096);
  CHECK(parse_hf_config(
            llama(R"(,"original_max_position_embeddings":64,"rope_scaling":)" + scaling), "c")
            .config.positions.rope_scaling.original_context == 64);
  CHECK(parse_hf_config(R"({"model_type":"gpt2","vocab_size":9,"max_position_embeddings":8,)"
                        R"("hidden_size":12,"num_hidden_layers":2,"n_head":3,)"
                        R"("num_attention_heads":3})",
                        "c")
            .config.hidden == 12);
}

TEST_CASE("a key that is there twice is refused, in whichever object") {
  CHECK_THAT(refusal(llama(R"(,"note":1,"note":1)"), ExitCode::data_corrupt),
             ContainsSubstring("config.json: has the key \"note\" twice"));
  CHECK_THAT(
      refusal(gpt2(R"(,"task":{"a":[{"b":1},{"b":2,"c":3,"c":4}]})"), ExitCode::data_corrupt),
      ContainsSubstring("config.json: has the key \"c\" twice"));
  CHECK(
      parse_hf_config(gpt2(R"(,"task":{"a":[{"b":1},{"b":2}],"n_layer":7})"), "c").config.layers ==
      12);
}

TEST_CASE("numbers of Python's that are not finite do no harm where nobody uses them") {
  for (const char* number : {"NaN", "Infinity", "-Infinity", "1e999"}) {
    CHECK(parse_hf_config(llama(fmt::format(R"(,"task":{{"x":[{}]}},"chunk":{})", number, number)),
                          "c")
              .config.hidden == 4096);
    CHECK_THAT(refusal(llama(fmt::format(R"(,"rms_norm_eps":{})", number))),
               ContainsSubstring(fmt::format(R"(rms_norm_eps = "{}" is no number)", number)));
  }
  CHECK(parse_hf_config(llama(R"(,"note":"\ud800")"), "c").config.hidden == 4096);
}

TEST_CASE("what is no JSON object is refused with its place") {
  const auto [text, reason] = GENERATE(table<std::string, std::string>({
      {"", "line 1, byte 1: is not JSON from here on"},
      {"[]", "is JSON, but no object"},
      {"{\n", "line 2, byte 3: is not JSON from here on"},
      {gpt2("") + "x", "is not JSON from here on"},
      {std::string(1'000'000, '['), "is nested too deep"},
  }));
  const std::string told = refusal(text, ExitCode::data_corrupt);
  CHECK_THAT(told, ContainsSubstring("config.json: "));
  CHECK_THAT(told, ContainsSubstring(reason));
}
