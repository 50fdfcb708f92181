// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "golden_case.hpp"

#include <fourfold/model/presets.hpp>

#include <nlohmann/json.hpp>

#include <fstream>
#include <iterator>
#include <stdexcept>

namespace fourfold::golden {
namespace {

using nlohmann::json;

model::RopeScaling read_scaling(const json& scaling) {
  model::RopeScaling result;
  const std::string kind = scaling.at("kind");
  result.kind =
      kind == "llama3" ? model::RopeScaling::Kind::by_wavelength : model::RopeScaling::Kind::linear;
  result.factor = scaling.at("factor");
  result.low_freq_factor = scaling.value("low_freq_factor", result.low_freq_factor);
  result.high_freq_factor = scaling.value("high_freq_factor", result.high_freq_factor);
  result.original_context = scaling.value("original_context", result.original_context);
  return result;
}

model::Architecture read_model(const json& document) {
  model::Architecture config;
  set_family(config, document.at("family") == "llama" ? model::Family::llama : model::Family::gpt2);
  if (document.contains("activation")) {
    config.feed_forward.activation = document.at("activation") == "silu"
                                         ? kernels::Activation::silu
                                         : kernels::Activation::gelu_tanh;
  }
  config.biases = document.value("biases", config.biases);
  config.positions.no_rope_interval = document.value("no_rope_interval", std::int64_t{0});
  config.layers = document.at("layers");
  config.hidden = document.at("hidden");
  config.attention.heads = document.at("heads");
  config.attention.kv_heads = document.value("kv_heads", config.attention.kv_heads);
  config.attention.head_dim = document.value("head_dim", config.attention.head_dim);
  config.feed_forward.width = document.at("ffn");
  config.vocab = document.at("vocab");
  config.context = document.at("context");
  config.tie_embeddings = document.at("tie_embeddings");
  config.norm.epsilon = document.value("norm_epsilon", config.norm.epsilon);
  config.positions.rope_theta = document.value("rope_theta", config.positions.rope_theta);
  config.attention.qkv_bias = document.value("qkv_bias", config.attention.qkv_bias);
  config.attention.qk_norm = document.value("qk_norm", config.attention.qk_norm);
  if (document.contains("rope_scaling")) {
    config.positions.rope_scaling = read_scaling(document.at("rope_scaling"));
  }
  return config.resolved();
}

std::vector<float> read_floats(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) {
    throw std::runtime_error("cannot read " + path);
  }
  std::vector<float> values(static_cast<std::size_t>(file.tellg()) / sizeof(float));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(values.data()),
            static_cast<std::streamsize>(values.size() * sizeof(float)));
  return values;
}

GoldenTensor read_tensor(const json& entry, const std::vector<float>& numbers) {
  GoldenTensor tensor{entry.at("kind"), entry.at("name"), {}, {}};
  const std::vector<std::int64_t> dims = entry.at("shape");
  tensor.shape = Shape(std::span(dims));
  const std::int64_t offset = entry.at("offset");
  if (offset + tensor.shape.elements() > static_cast<std::int64_t>(numbers.size())) {
    throw std::runtime_error(tensor.name + " reaches beyond the numbers");
  }
  tensor.values.assign(numbers.begin() + offset,
                       numbers.begin() + offset + tensor.shape.elements());
  return tensor;
}

}  // namespace

const GoldenTensor& GoldenCase::tensor(const std::string& kind, const std::string& name) const {
  for (const GoldenTensor& candidate : tensors) {
    if (candidate.kind == kind && candidate.name == name) {
      return candidate;
    }
  }
  throw std::runtime_error("no golden " + kind + " of " + name);
}

GoldenCase read_golden_case(const std::string& folder, const std::string& name) {
  const std::string path = folder + "/" + name + ".json";
  std::ifstream file(path);
  if (!file) {
    throw std::runtime_error("cannot read " + path);
  }
  const json document = json::parse(file);
  GoldenCase result;
  result.config = read_model(document.at("model"));
  result.seed = document.at("seed");
  result.sequences = document.at("sequences");
  result.tokens = document.at("tokens");
  const json& optimizer = document.at("optimizer");
  result.lr = optimizer.at("lr");
  result.beta1 = optimizer.at("betas").at(0);
  result.beta2 = optimizer.at("betas").at(1);
  result.epsilon = optimizer.at("eps");
  result.weight_decay = optimizer.at("weight_decay");
  result.clip = optimizer.at("clip");
  document.at("token").get_to(result.token);
  document.at("target").get_to(result.target);
  document.at("loss").get_to(result.loss);
  document.at("gradient_norm").get_to(result.gradient_norm);
  document.at("normal_bits").get_to(result.normal_bits);
  const std::vector<float> numbers = read_floats(folder + "/" + name + ".f32");
  for (const json& entry : document.at("tensors")) {
    result.tensors.push_back(read_tensor(entry, numbers));
  }
  return result;
}

}  // namespace fourfold::golden
