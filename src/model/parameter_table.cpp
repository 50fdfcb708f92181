// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/model/parameter_table.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace fourfold::model {
namespace {

constexpr float base_std = 0.02F;

/// Writes the specs of one model, unit after unit.
class Table {
 public:
  explicit Table(const ModelConfig& config)
      : config_(config),
        residual_std_(
            static_cast<float>(0.02 / std::sqrt(2.0 * static_cast<double>(config.layers)))) {}

  std::vector<ParameterSpec> write() {
    matrix("embedding.token", config_.vocab, config_.hidden);
    if (has_biases()) {
      matrix("embedding.position", config_.context, config_.hidden);
    }
    for (std::int64_t layer = 0; layer < config_.layers; ++layer) {
      unit_ = 1 + static_cast<int>(layer);
      block(fmt::format("layers.{}.", layer));
    }
    unit_ = 1 + static_cast<int>(config_.layers);
    norm("final_norm");
    if (!config_.tie_embeddings) {
      matrix("lm_head", config_.vocab, config_.hidden);
    }
    return std::move(specs_);
  }

 private:
  enum class Place { alone, behind };

  bool has_biases() const { return config_.family == Family::gpt2; }

  void block(const std::string& prefix) {
    const std::int64_t query = config_.heads * config_.head_dim;
    const std::int64_t key = config_.kv_heads * config_.head_dim;
    const bool qkv_bias = has_biases() || config_.qkv_bias;
    norm(prefix + "attn_norm");
    linear(prefix + "attn.q_proj", query, config_.hidden, qkv_bias);
    linear(prefix + "attn.k_proj", key, config_.hidden, qkv_bias, Place::behind);
    linear(prefix + "attn.v_proj", key, config_.hidden, qkv_bias, Place::behind);
    linear(prefix + "attn.o_proj", config_.hidden, query, has_biases());
    specs_[output_weight_].init_std = residual_std_;
    norm(prefix + "mlp_norm");
    if (config_.family == Family::llama) {
      linear(prefix + "mlp.gate_proj", config_.ffn, config_.hidden, false);
      linear(prefix + "mlp.up_proj", config_.ffn, config_.hidden, false, Place::behind);
    } else {
      linear(prefix + "mlp.up_proj", config_.ffn, config_.hidden, true);
    }
    linear(prefix + "mlp.down_proj", config_.hidden, config_.ffn, has_biases());
    specs_[output_weight_].init_std = residual_std_;
  }

  void linear(const std::string& prefix, std::int64_t out, std::int64_t in, bool bias,
              Place place = Place::alone) {
    matrix(prefix, out, in, place);
    output_weight_ = specs_.size() - 1;
    if (bias) {
      vector(prefix + ".bias", out, Init::zeros, place);
    }
  }

  void norm(const std::string& prefix) {
    vector(prefix + ".weight", config_.hidden, Init::ones);
    if (has_biases()) {
      vector(prefix + ".bias", config_.hidden, Init::zeros);
    }
  }

  void matrix(const std::string& prefix, std::int64_t out, std::int64_t in,
              Place place = Place::alone) {
    specs_.push_back({prefix + ".weight", Shape{out, in}, Init::normal, base_std, true, unit_,
                      place == Place::behind});
  }

  void vector(std::string spec_name, std::int64_t features, Init init, Place place = Place::alone) {
    specs_.push_back(
        {std::move(spec_name), Shape{features}, init, 0, false, unit_, place == Place::behind});
  }

  const ModelConfig& config_;
  float residual_std_;
  int unit_ = 0;
  std::size_t output_weight_ = 0;  ///< index of the last linear layer's weight
  std::vector<ParameterSpec> specs_;
};

}  // namespace

Units all_units(const ModelConfig& config) {
  return {0, static_cast<int>(config.layers) + 2};
}

std::vector<ParameterSpec> parameter_table(const ModelConfig& config) {
  return Table(config).write();
}

std::vector<ParameterSpec> parameter_table(const ModelConfig& config, std::span<const Units> held) {
  const int head = all_units(config).end - 1;
  int behind = 0;
  for (const Units& units : held) {
    FOURFOLD_EXPECT(behind <= units.begin && units.begin < units.end && units.end <= head + 1);
    behind = units.end;
  }
  const auto holds = [&](int unit) {
    return std::ranges::any_of(held, [&](const Units& units) { return units.contains(unit); });
  };
  std::vector<ParameterSpec> specs = parameter_table(config);
  std::vector<ParameterSpec> result;
  std::copy_if(specs.begin(), specs.end(), std::back_inserter(result),
               [&](const ParameterSpec& spec) { return holds(spec.unit); });
  if (config.tie_embeddings && holds(head) && !holds(0)) {
    ParameterSpec copy = specs.front();
    copy.unit = head;
    result.push_back(std::move(copy));
  }
  return result;
}

std::vector<ParameterSpec> parameter_table(const ModelConfig& config, Units units) {
  return parameter_table(config, std::span(&units, 1));
}

}  // namespace fourfold::model
