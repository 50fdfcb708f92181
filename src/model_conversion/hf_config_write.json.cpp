// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/json_text.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/model/presets.hpp>
#include <fourfold/model_conversion/hf_config.hpp>

#include <nlohmann/json.hpp>

#include <utility>
#include <vector>

namespace fourfold::model_conversion {
namespace {

using nlohmann::ordered_json;

const char* torch_name(DType dtype) {
  switch (dtype) {
    case DType::bf16:
      return "bfloat16";
    case DType::f16:
      return "float16";
    default:
      FOURFOLD_EXPECT(dtype == DType::f32);
      return "float32";
  }
}

[[noreturn]] void refuse(const char* key, std::int64_t value, const std::string& needs) {
  throw UserError(ExitCode::config,
                  format_message("model.{} = {} cannot be exported ({}); keep such a model in "
                                 "fourfold's own format",
                                 key, value, needs));
}

[[noreturn]] void refuse_traits(const model::Architecture& config) {
  throw UserError(
      ExitCode::config,
      format_message(
          "a model with norm = \"{}\", positions = \"{}\", no_rope_interval = {}, "
          "gated = {}, biases = {}, qkv_bias = {} and qk_norm = {} cannot be exported "
          "(GPT2LMHeadModel has norm = \"layer\", learned positions, biases and no gate; "
          "LlamaForCausalLM has norm = \"rms\", rotary positions and a gate, "
          "Qwen2ForCausalLM has them with qkv_bias, Qwen3ForCausalLM with qk_norm, and "
          "SmolLM3ForCausalLM with no_rope_interval); keep such a model in fourfold's "
          "own format",
          name(config.norm.kind), name(config.positions.kind), config.positions.no_rope_interval,
          config.feed_forward.gated, config.biases, config.attention.qkv_bias,
          config.attention.qk_norm));
}

const char* hf_name(kernels::Activation activation) {
  return activation == kernels::Activation::silu ? "silu" : "gelu_pytorch_tanh";
}

void refuse_unlike_gpt2(const model::Architecture& config) {
  if (config.attention.kv_heads != config.attention.heads) {
    refuse("kv_heads", config.attention.kv_heads,
           format_message("GPT2LMHeadModel has as many as heads, {}", config.attention.heads));
  }
  if (config.attention.heads * config.attention.head_dim != config.hidden) {
    refuse("head_dim", config.attention.head_dim,
           format_message("GPT2LMHeadModel has hidden / heads, {} / {}", config.hidden,
                          config.attention.heads));
  }
}

void add_gpt2(const model::Architecture& config, ordered_json& json) {
  refuse_unlike_gpt2(config);
  json["n_positions"] = config.context;
  json["n_embd"] = config.hidden;
  json["n_layer"] = config.layers;
  json["n_head"] = config.attention.heads;
  json["n_inner"] = config.feed_forward.width;
  const bool is_gelu = config.feed_forward.activation == kernels::Activation::gelu_tanh;
  json["activation_function"] = is_gelu ? "gelu_new" : hf_name(config.feed_forward.activation);
  json["layer_norm_epsilon"] = config.norm.epsilon;
  json["resid_pdrop"] = config.dropout;
  json["embd_pdrop"] = config.dropout;
  json["attn_pdrop"] = 0.0;
  json["scale_attn_weights"] = true;
}

/// The keys of transformers 4, which 5 reads too.
void add_rope(const model::Architecture& config, ordered_json& json) {
  const model::RopeScaling& scaling = config.positions.rope_scaling;
  json["rope_theta"] = config.positions.rope_theta;
  json["rope_scaling"] = nullptr;
  if (scaling.kind == model::RopeScaling::Kind::none) {
    return;
  }
  ordered_json object{{"rope_type", name(scaling.kind)}, {"factor", scaling.factor}};
  if (scaling.kind == model::RopeScaling::Kind::by_wavelength) {
    object["low_freq_factor"] = scaling.low_freq_factor;
    object["high_freq_factor"] = scaling.high_freq_factor;
    object["original_max_position_embeddings"] = scaling.original_context;
  }
  json["rope_scaling"] = std::move(object);
}

/// A 1 for each layer that has rotary positions.
std::vector<int> rope_layers(const model::Architecture& config) {
  std::vector<int> result;
  for (std::int64_t i = 0; i < config.layers; ++i) {
    result.push_back(config.layer(i).positions.are_rotary() ? 1 : 0);
  }
  return result;
}

void add_llama(const model::Architecture& config, HfClass kind, ordered_json& json) {
  const bool is_qwen = kind == HfClass::qwen2 || kind == HfClass::qwen3;
  if (kind == HfClass::llama && config.hidden % config.attention.heads != 0) {
    refuse(
        "heads", config.attention.heads,
        format_message("LlamaForCausalLM wants a divisor of hidden, {}, also with head_dim given",
                       config.hidden));
  }
  json["max_position_embeddings"] = config.context;
  json["hidden_size"] = config.hidden;
  json["intermediate_size"] = config.feed_forward.width;
  json["num_hidden_layers"] = config.layers;
  json["num_attention_heads"] = config.attention.heads;
  json["num_key_value_heads"] = config.attention.kv_heads;
  json["head_dim"] = config.attention.head_dim;
  json["hidden_act"] = hf_name(config.feed_forward.activation);
  json["rms_norm_eps"] = config.norm.epsilon;
  add_rope(config, json);
  json["attention_dropout"] = 0.0;
  if (is_qwen || kind == HfClass::smollm3) {
    json["use_sliding_window"] = false;
  }
  if (!is_qwen) {
    json["mlp_bias"] = config.biases;
  }
  if (kind != HfClass::qwen2) {
    json["attention_bias"] = config.biases;
  }
  if (kind == HfClass::smollm3) {
    json["no_rope_layer_interval"] = config.positions.no_rope_interval;
    json["no_rope_layers"] = rope_layers(config);
    json["pad_token_id"] = nullptr;  // the default may lie beyond the vocabulary
  }
}

void add_special(const SpecialTokens& special, ordered_json& json) {
  json["bos_token_id"] = special.bos ? ordered_json(*special.bos) : ordered_json(nullptr);
  json["eos_token_id"] = special.eos.empty()       ? ordered_json(nullptr)
                         : special.eos.size() == 1 ? ordered_json(special.eos.front())
                                                   : ordered_json(special.eos);
}

/// model_type and the class that reads it.
std::pair<const char*, const char*> type_and_class(HfClass kind) {
  switch (kind) {
    case HfClass::gpt2:
      return {"gpt2", "GPT2LMHeadModel"};
    case HfClass::qwen2:
      return {"qwen2", "Qwen2ForCausalLM"};
    case HfClass::qwen3:
      return {"qwen3", "Qwen3ForCausalLM"};
    case HfClass::smollm3:
      return {"smollm3", "SmolLM3ForCausalLM"};
    case HfClass::llama:
      break;
  }
  return {"llama", "LlamaForCausalLM"};
}

}  // namespace

HfClass hf_class_of(const model::Architecture& config) {
  const model::PositionTraits& positions = config.positions;
  const model::AttentionTraits& attention = config.attention;
  const bool is_rms = config.norm.kind == model::NormTraits::Kind::rms;
  if (!is_rms && positions.kind == model::PositionTraits::Kind::learned &&
      !config.feed_forward.gated && config.biases && !attention.qk_norm) {
    return HfClass::gpt2;
  }
  const bool skips_layers = positions.no_rope_interval > 0;
  const int extras = int{attention.qkv_bias} + int{attention.qk_norm} + int{skips_layers};
  if (!is_rms || !positions.are_rotary() || !config.feed_forward.gated || extras > 1 ||
      (config.biases && attention.qk_norm)) {
    refuse_traits(config);
  }
  return attention.qkv_bias  ? HfClass::qwen2
         : attention.qk_norm ? HfClass::qwen3
         : skips_layers      ? HfClass::smollm3
                             : HfClass::llama;
}

std::string hf_generation_config_json(const SpecialTokens& special) {
  ordered_json json{{"_from_model_config", true}};
  add_special(special, json);
  return json_text(json, 2) + "\n";
}

std::string hf_config_json(const model::Architecture& config, std::int64_t vocab_rows, DType dtype,
                           const SpecialTokens& special) {
  FOURFOLD_EXPECT(vocab_rows >= config.vocab);
  const HfClass kind = hf_class_of(config);
  ordered_json json;
  const auto [type, class_name] = type_and_class(kind);
  json["architectures"] = {class_name};
  json["model_type"] = type;
  json["vocab_size"] = vocab_rows;
  kind == HfClass::gpt2 ? add_gpt2(config, json) : add_llama(config, kind, json);
  json["initializer_range"] = 0.02;
  json["tie_word_embeddings"] = config.tie_embeddings;
  json["use_cache"] = true;
  add_special(special, json);               // also null: the defaults would be others'
  json["dtype"] = torch_name(dtype);        // transformers 5
  json["torch_dtype"] = torch_name(dtype);  // and 4
  return json_text(json, 2) + "\n";
}

}  // namespace fourfold::model_conversion
