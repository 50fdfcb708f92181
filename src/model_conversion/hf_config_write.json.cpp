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
                  format_message("model.{} = {} cannot be exported ({}) such a model stays in "
                                 "fourfold's own format",
                                 key, value, needs));
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
  json["activation_function"] = "gelu_new";
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

void add_llama(const model::Architecture& config, ordered_json& json) {
  const bool is_qwen = config.attention.qkv_bias || config.attention.qk_norm;
  if (config.attention.qkv_bias && config.attention.qk_norm) {
    refuse("qkv_bias", 1, "Qwen3ForCausalLM, which has norms of queries and keys, has no biases");
  }
  if (!is_qwen && config.hidden % config.attention.heads != 0) {
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
  json["hidden_act"] = "silu";
  json["rms_norm_eps"] = config.norm.epsilon;
  add_rope(config, json);
  json["attention_dropout"] = 0.0;
  if (is_qwen) {
    json["use_sliding_window"] = false;
  } else {
    json["mlp_bias"] = false;
  }
  if (!config.attention.qkv_bias) {
    json["attention_bias"] = false;
  }
}

void add_special(const SpecialTokens& special, ordered_json& json) {
  json["bos_token_id"] = special.bos ? ordered_json(*special.bos) : ordered_json(nullptr);
  json["eos_token_id"] = special.eos.empty()       ? ordered_json(nullptr)
                         : special.eos.size() == 1 ? ordered_json(special.eos.front())
                                                   : ordered_json(special.eos);
}

/// model_type and the class that reads it.
std::pair<const char*, const char*> type_and_class(const model::Architecture& config) {
  if (family_of(config) == model::Family::gpt2) {
    return {"gpt2", "GPT2LMHeadModel"};
  }
  return config.attention.qk_norm    ? std::pair{"qwen3", "Qwen3ForCausalLM"}
         : config.attention.qkv_bias ? std::pair{"qwen2", "Qwen2ForCausalLM"}
                                     : std::pair{"llama", "LlamaForCausalLM"};
}

}  // namespace

std::string hf_generation_config_json(const SpecialTokens& special) {
  ordered_json json{{"_from_model_config", true}};
  add_special(special, json);
  return json_text(json, 2) + "\n";
}

std::string hf_config_json(const model::Architecture& config, std::int64_t vocab_rows, DType dtype,
                           const SpecialTokens& special) {
  FOURFOLD_EXPECT(vocab_rows >= config.vocab);
  const bool is_gpt2 = family_of(config) == model::Family::gpt2;
  ordered_json json;
  const auto [type, class_name] = type_and_class(config);
  json["architectures"] = {class_name};
  json["model_type"] = type;
  json["vocab_size"] = vocab_rows;
  is_gpt2 ? add_gpt2(config, json) : add_llama(config, json);
  json["initializer_range"] = 0.02;
  json["tie_word_embeddings"] = config.tie_embeddings;
  json["use_cache"] = true;
  add_special(special, json);               // also null: the defaults would be others'
  json["dtype"] = torch_name(dtype);        // transformers 5
  json["torch_dtype"] = torch_name(dtype);  // and 4
  return json_text(json, 2) + "\n";
}

}  // namespace fourfold::model_conversion
