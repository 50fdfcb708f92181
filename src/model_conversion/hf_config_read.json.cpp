// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "config_members.json.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/json_text.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/text.hpp>
#include <fourfold/model/presets.hpp>
#include <fourfold/model_conversion/hf_config.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

namespace fourfold::model_conversion {
namespace {

using nlohmann::json;

/// The library, as Python's, takes the last of several; which was meant is not known.
void refuse_key_twice(std::string_view text, const std::string& file_name) {
  std::vector<std::set<std::string>> keys;  // of the objects that are open, outermost first
  std::string twice;
  const auto look = [&](int /*depth*/, json::parse_event_t event, const json& value) {
    if (event == json::parse_event_t::object_start) {
      keys.emplace_back();
    } else if (event == json::parse_event_t::object_end) {
      keys.pop_back();
    } else if (event == json::parse_event_t::key) {
      const auto& key = value.get_ref<const std::string&>();
      twice = keys.back().insert(key).second || !twice.empty() ? twice : key;
    }
    return true;
  };
  std::ignore = json_if_any<json>(text, look);
  if (!twice.empty()) {
    throw UserError(ExitCode::data_corrupt,
                    format_message("{}: has the key \"{}\" twice (which is meant is not known); "
                                   "remove one of them",
                                   file_name, printable(twice)));
  }
}

json parse(std::string_view text, const std::string& file_name) {
  const std::string standard = json_from_python(text);
  auto document = parse_json<json>(standard, file_name);
  refuse_key_twice(standard, file_name);
  if (!document.is_object()) {
    throw UserError(
        ExitCode::data_corrupt,
        format_message("{}: is JSON, but no object; fetch or make the file again", file_name));
  }
  return document;
}

void note_dropout(const Members& members, const char* key, double taken, HfModel& model) {
  const double value = members.number(key, 0);
  if (value != taken) {
    model.notes.push_back(
        format_message("{} = {} is not taken over (model.dropout = {})", key, value, taken));
  }
}

kernels::Activation read_activation(const Members& members, const char* key,
                                    const char* otherwise) {
  const std::string activation = members.text(key, otherwise);
  if (activation == "gelu_new" || activation == "gelu_pytorch_tanh") {
    return kernels::Activation::gelu_tanh;
  }
  if (activation != "silu" && activation != "swish") {
    members.not_computed(key, "gelu_new, gelu_pytorch_tanh and silu");
  }
  return kernels::Activation::silu;
}

void read_gpt2(const Members& members, HfModel& model) {
  members.require_flag("scale_attn_weights", true, "scaled attention");
  members.require_flag("scale_attn_by_inverse_layer_idx", false, "equal scales in all layers");
  members.require_flag("add_cross_attention", false, "self-attention");
  model::Architecture& config = model.config;
  set_family(config, model::Family::gpt2);
  config.feed_forward.activation = read_activation(members, "activation_function", "gelu_new");
  config.vocab = members.size("vocab_size");
  config.context = members.size_of({"n_positions", "max_position_embeddings", "n_ctx"});
  config.hidden = members.size_of({"n_embd", "hidden_size"});
  config.layers = members.size_of({"n_layer", "num_hidden_layers"});
  config.attention.heads = members.size_of({"n_head", "num_attention_heads"});
  config.feed_forward.width = members.optional_size("n_inner").value_or(4 * config.hidden);
  config.norm.epsilon = members.number("layer_norm_epsilon", 1e-5);
  config.tie_embeddings = members.flag("tie_word_embeddings", true);
  config.dropout = members.number("resid_pdrop", 0.1);
  note_dropout(members, "embd_pdrop", config.dropout, model);
  if (const double attention = members.number("attn_pdrop", 0.1); attention != 0) {
    model.notes.push_back(format_message(
        "attn_pdrop = {} is not taken over (attention probabilities are never dropped)",
        attention));
  }
}

void refuse_sliding_windows(const Members& members) {
  members.require_flag("use_sliding_window", false, "attention over the whole context");
  const json* const layers = members.find("layer_types");
  if (layers == nullptr) {
    return;
  }
  if (layers->is_array() && std::ssize(*layers) != members.size("num_hidden_layers")) {
    members.contradict("layer_types", members.stated("num_hidden_layers"));
  }
  for (const json& layer : *layers) {
    if (layer != "full_attention") {
      members.not_computed("layer_types", "full_attention");
    }
  }
}

/// Biases of all linear layers, or of none.
bool read_biases(const Members& members, std::string_view type) {
  const bool has = type == "llama" || type == "smollm3" ? members.flag("mlp_bias", false) : false;
  if (!has) {
    members.require_flag("mlp_bias", false, "feed-forward layers without biases");
  }
  if (type != "qwen2" && members.flag("attention_bias", false) != has) {
    members.not_computed(has ? "mlp_bias" : "attention_bias",
                         "biases of all linear layers or of none, or as Qwen 2 has them,");
  }
  return has;
}

/// The interval of layers without positions, in which they have to be.
std::int64_t read_no_rope_interval(const Members& members, std::int64_t layers) {
  const json* const list = members.find("no_rope_layers");
  if (list == nullptr) {
    return members.optional_size("no_rope_layer_interval").value_or(4);
  }
  const auto is_said = [&](std::int64_t interval) {
    if (!list->is_array() || std::ssize(*list) < layers) {
      return false;
    }
    for (std::int64_t i = 0; i < layers; ++i) {
      if ((*list)[i] != (interval > 0 && (i + 1) % interval == 0 ? 0 : 1)) {
        return false;
      }
    }
    return true;
  };
  for (std::int64_t interval = 0; interval <= layers; ++interval) {
    if (is_said(interval)) {
      return interval;
    }
  }
  members.not_computed("no_rope_layers",
                       "each so-manieth layer without positions, a number for "
                       "each layer,");
}

void read_llama(const Members& members, std::string_view type, HfModel& model) {
  const bool is_smollm3 = type == "smollm3";
  members.require_flag("is_causal", true, "attention to what came before");
  refuse_sliding_windows(members);
  model::Architecture& config = model.config;
  set_family(config, model::Family::llama);
  config.feed_forward.activation = read_activation(members, "hidden_act", "silu");
  config.biases = read_biases(members, type);
  config.attention.qkv_bias = type == "qwen2";
  config.attention.qk_norm = type == "qwen3";
  config.vocab = members.size("vocab_size");
  config.context = members.size("max_position_embeddings");
  config.hidden = members.size("hidden_size");
  config.layers = members.size("num_hidden_layers");
  config.attention.heads = members.size("num_attention_heads");
  config.attention.kv_heads =
      members.optional_size("num_key_value_heads").value_or(config.attention.heads);
  constexpr std::int64_t head_dim_of_qwen3 = 128;
  config.attention.head_dim =
      members.optional_size("head_dim").value_or(type == "qwen3" ? head_dim_of_qwen3 : 0);
  config.feed_forward.width = members.size("intermediate_size");
  config.norm.epsilon = members.number("rms_norm_eps", 1e-6);
  config.tie_embeddings = members.flag("tie_word_embeddings", is_smollm3);
  read_rope(members, is_smollm3 ? 2e6 : 1e4, config);
  if (is_smollm3) {
    config.positions.no_rope_interval = read_no_rope_interval(members, config.layers);
  }
  note_dropout(members, "attention_dropout", 0, model);
}

/// The class of the model, for which model_type stands too.
void refuse_other_architectures(const Members& members, std::string_view type) {
  const json* const list = members.find("architectures");
  if (list == nullptr || !list->is_array() || list->empty()) {
    return;
  }
  const bool agrees = std::ranges::any_of(*list, [&](const json& name) {
    return name.is_string() &&
           std::ranges::equal(name.get<std::string>().substr(0, type.size()), type,
                              [](unsigned char a, char b) { return std::tolower(a) == b; });
  });
  if (!agrees) {
    members.contradict("architectures", members.stated("model_type"));
  }
}

}  // namespace

HfModel parse_hf_config(std::string_view text, const std::string& file_name) {
  const json document = parse(text, file_name);
  const Members members(document, file_name);
  HfModel model;
  if (members.find("quantization_config") != nullptr) {
    members.not_computed("quantization_config", "with weights that are not quantized");
  }
  const std::string type = members.text("model_type", "");
  if (type == "gpt2") {
    read_gpt2(members, model);
  } else if (type == "llama" || type == "qwen2" || type == "qwen3" || type == "smollm3") {
    read_llama(members, type, model);
  } else {
    members.not_computed("model_type", "gpt2, llama, qwen2, qwen3 and smollm3");
  }
  refuse_other_architectures(members, type);
  try {
    model.config = model.config.resolved();
  } catch (const UserError& error) {
    throw UserError(error.code(), format_message("{}: {}", file_name, error.what()));
  }
  return model;
}

}  // namespace fourfold::model_conversion
