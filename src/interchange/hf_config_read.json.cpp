// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/base/json_text.hpp>
#include <fourfold/base/text.hpp>
#include <fourfold/interchange/hf_config.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <optional>

namespace fourfold::interchange {
namespace {

using nlohmann::json;

/// Members of a config.json by key; null counts as missing, as in transformers.
class Members {
 public:
  Members(const json& object, std::string file_name)
      : object_(object), file_name_(std::move(file_name)) {}

  [[noreturn]] void refuse(const std::string& key, const std::string& why) const {
    throw UserError(ExitCode::config,
                    fmt::format("{}: {} = {} {}", file_name_, key, shown(key), why));
  }
  [[noreturn]] void not_computed(const std::string& key, const std::string& what) const {
    refuse(key, fmt::format("cannot be imported (fourfold computes {} only) choose another model",
                            what));
  }

  const json* find(const std::string& key) const {
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  std::int64_t size(const std::string& key) const {
    const auto value = optional_size(key);
    if (!value) {
      refuse(key, "is missing (the shape of the model depends on it) complete the file");
    }
    return *value;
  }
  std::optional<std::int64_t> optional_size(const std::string& key) const {
    const json* const value = find(key);
    if (value == nullptr) {
      return std::nullopt;
    }
    if (!value->is_number_unsigned() || value->get<std::uint64_t>() < 1 ||
        value->get<std::uint64_t>() > 1'000'000'000) {
      refuse(key, "is no size (a whole number from 1 to 1000000000 is) correct the file");
    }
    return value->get<std::int64_t>();
  }
  double number(const std::string& key, std::optional<double> otherwise = {}) const {
    const json* const value = find(key);
    if ((value == nullptr && !otherwise) || (value != nullptr && !value->is_number())) {
      refuse(key, "is no number (the model depends on it) correct the file");
    }
    return value == nullptr ? *otherwise : value->get<double>();
  }
  bool flag(const std::string& key, bool otherwise) const {
    const json* const value = find(key);
    if (value != nullptr && !value->is_boolean()) {
      refuse(key, "is neither true nor false; correct the file");
    }
    return value == nullptr ? otherwise : value->get<bool>();
  }
  std::string text(const std::string& key, const std::string& otherwise) const {
    const json* const value = find(key);
    if (value != nullptr && !value->is_string()) {
      refuse(key, "is no text; correct the file");
    }
    return value == nullptr ? otherwise : value->get<std::string>();
  }
  void require_flag(const std::string& key, bool needed, const std::string& what) const {
    if (flag(key, needed) != needed) {
      not_computed(key, what);
    }
  }
  std::optional<Members> object(const std::string& key) const {
    const json* const value = find(key);
    if (value == nullptr) {
      return std::nullopt;
    }
    if (!value->is_object()) {
      refuse(key, "is no object; correct the file");
    }
    return Members(*value, fmt::format("{}: in {}", file_name_, key));
  }

 private:
  std::string shown(const std::string& key) const {
    const auto found = object_.find(key);
    return found == object_.end() ? "(nothing)" : printable(json_text(*found).substr(0, 200));
  }

  const json& object_;
  std::string file_name_;
};

json parse(std::string_view text, const std::string& file_name) {
  auto document = parse_json<json>(text, file_name);
  if (!document.is_object()) {
    throw UserError(
        ExitCode::data_corrupt,
        fmt::format("{}: is JSON, but no object; fetch or make the file again", file_name));
  }
  return document;
}

void note_dropout(const Members& members, const char* key, double taken, HfModel& model) {
  const double value = members.number(key, 0);
  if (value != taken) {
    model.notes.push_back(
        fmt::format("{} = {} is not taken over (model.dropout = {})", key, value, taken));
  }
}

void read_gpt2(const Members& members, HfModel& model) {
  const std::string activation = members.text("activation_function", "gelu_new");
  if (activation != "gelu_new" && activation != "gelu_pytorch_tanh") {
    members.not_computed("activation_function", "gelu_new and gelu_pytorch_tanh");
  }
  members.require_flag("scale_attn_weights", true, "scaled attention");
  members.require_flag("scale_attn_by_inverse_layer_idx", false, "equal scales in all layers");
  members.require_flag("add_cross_attention", false, "self-attention");
  model::ModelConfig& config = model.config;
  config.family = model::Family::gpt2;
  config.vocab = members.size("vocab_size");
  config.context = members.size("n_positions");
  config.hidden = members.size("n_embd");
  config.layers = members.size("n_layer");
  config.heads = members.size("n_head");
  config.ffn = members.optional_size("n_inner").value_or(4 * config.hidden);
  config.norm_epsilon = members.number("layer_norm_epsilon", 1e-5);
  config.tie_embeddings = members.flag("tie_word_embeddings", true);
  config.dropout = members.number("resid_pdrop", 0.1);
  note_dropout(members, "embd_pdrop", config.dropout, model);
  if (const double attention = members.number("attn_pdrop", 0.1); attention != 0) {
    model.notes.push_back(
        fmt::format("attn_pdrop = {} is not taken over (attention probabilities are never dropped)",
                    attention));
  }
}

void read_rope(const Members& members, model::ModelConfig& config) {
  // transformers 5 has rope_parameters, 4 has rope_theta and rope_scaling.
  const std::optional<Members> parameters = members.object("rope_parameters");
  const std::optional<Members> scaling = parameters ? parameters : members.object("rope_scaling");
  config.rope_theta = members.number("rope_theta", 10000.0);
  if (parameters) {
    config.rope_theta = parameters->number("rope_theta", config.rope_theta);
  }
  for (const Members* const where : {&members, scaling ? &*scaling : nullptr}) {
    if (where != nullptr && where->number("partial_rotary_factor", 1) != 1) {
      where->not_computed("partial_rotary_factor", "rotary positions of whole heads");
    }
  }
  if (!scaling) {
    return;
  }
  const char* const key = scaling->find("rope_type") != nullptr ? "rope_type" : "type";
  const std::string type = scaling->text(key, "default");
  if (type == "default") {
    return;
  }
  if (type != "linear" && type != "llama3") {
    scaling->not_computed(key, "default, linear and llama3");
  }
  config.rope_scaling.factor = scaling->number("factor");
  config.rope_scaling.kind = model::RopeScaling::Kind::linear;
  if (type == "llama3") {
    config.rope_scaling = {.kind = model::RopeScaling::Kind::llama3,
                           .factor = config.rope_scaling.factor,
                           .low_freq_factor = scaling->number("low_freq_factor"),
                           .high_freq_factor = scaling->number("high_freq_factor"),
                           .original_context = scaling->size("original_max_position_embeddings")};
  }
}

void refuse_sliding_windows(const Members& members) {
  members.require_flag("use_sliding_window", false, "attention over the whole context");
  const json* const layers = members.find("layer_types");
  if (layers == nullptr) {
    return;
  }
  for (const json& layer : *layers) {
    if (layer != "full_attention") {
      members.not_computed("layer_types", "full_attention");
    }
  }
}

void read_llama(const Members& members, bool is_qwen2, HfModel& model) {
  const std::string activation = members.text("hidden_act", "silu");
  if (activation != "silu" && activation != "swish") {
    members.not_computed("hidden_act", "silu");
  }
  if (!is_qwen2) {
    members.require_flag("attention_bias", false,
                         "attention without biases, or as Qwen 2 has them,");
  }
  members.require_flag("mlp_bias", false, "feed-forward layers without biases");
  refuse_sliding_windows(members);
  model::ModelConfig& config = model.config;
  config.family = model::Family::llama;
  config.qkv_bias = is_qwen2;
  config.vocab = members.size("vocab_size");
  config.context = members.size("max_position_embeddings");
  config.hidden = members.size("hidden_size");
  config.layers = members.size("num_hidden_layers");
  config.heads = members.size("num_attention_heads");
  config.kv_heads = members.optional_size("num_key_value_heads").value_or(config.heads);
  config.head_dim = members.optional_size("head_dim").value_or(0);
  config.ffn = members.size("intermediate_size");
  config.norm_epsilon = members.number("rms_norm_eps", 1e-6);
  config.tie_embeddings = members.flag("tie_word_embeddings", false);
  read_rope(members, config);
  note_dropout(members, "attention_dropout", 0, model);
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
  } else if (type == "llama" || type == "qwen2") {
    read_llama(members, type == "qwen2", model);
  } else {
    members.not_computed("model_type", "gpt2, llama and qwen2");
  }
  try {
    model.config = model.config.resolved();
  } catch (const UserError& error) {
    throw UserError(error.code(), fmt::format("{}: {}", file_name, error.what()));
  }
  return model;
}

}  // namespace fourfold::interchange
