// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/text.hpp>
#include <fourfold/model/parameter_table.hpp>

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

namespace fourfold::model {
namespace {

constexpr float base_std = 0.02F;

bool matches(const std::string& pattern, const std::string& name) {
  return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

/// Writes the specs of one model, unit after unit.
class Table {
 public:
  explicit Table(const Architecture& config)
      : config_(config), residual_std_(static_cast<float>(0.02 / std::sqrt(2 * config.layers))) {}

  std::vector<ParameterSpec> write() {
    embedding("embedding.token", config_.vocab, vocabulary(0));
    if (config_.positions.kind == PositionTraits::Kind::learned) {
      embedding("embedding.position", config_.context, std::nullopt);
    }
    for (int layer = 0; layer < config_.layers; ++layer) {
      unit_ = 1 + layer;
      block(fmt::format("layers.{}.", layer), config_.layer(layer));
    }
    ++unit_;
    norm("final_norm");
    if (!config_.tie_embeddings) {
      linear("lm_head", config_.vocab, config_.hidden,
             {.cut = vocabulary(0), .group = OptimizerGroup::others});
    }
    freeze();
    return std::move(specs_);
  }

 private:
  using Cut = std::optional<TensorCut>;

  struct LinearTraits {
    bool bias = false;
    Cut cut = std::nullopt;
    PartialGradient partial = PartialGradient::never;
    bool fused_with_previous = false;
    float init_std = base_std;
    OptimizerGroup group = OptimizerGroup::hidden_matrices;
  };

  static Cut cut_of(TensorCut::Unit unit, std::size_t dim, std::int64_t units) {
    return TensorCut{unit, dim, units};
  }
  Cut query_heads(std::size_t dim) const {
    return cut_of(TensorCut::Unit::query_head, dim, config_.attention.heads);
  }
  Cut kv_heads(std::size_t dim) const {
    return cut_of(TensorCut::Unit::kv_head, dim, config_.attention.kv_heads);
  }
  Cut ffn_features(std::size_t dim) const {
    return cut_of(TensorCut::Unit::ffn_feature, dim, config_.feed_forward.width);
  }
  Cut vocabulary(std::size_t dim) const {
    return cut_of(TensorCut::Unit::vocabulary_row, dim, config_.vocab);
  }

  void block(const std::string& prefix, const LayerTraits& layer) {
    const std::int64_t query = layer.attention.heads * layer.attention.head_dim;
    const std::int64_t key = layer.attention.kv_heads * layer.attention.head_dim;
    const bool qkv_bias = config_.has_qkv_bias();
    norm(prefix + "attn_norm");
    linear(prefix + "attn.q_proj", query, config_.hidden,
           {.bias = qkv_bias, .cut = query_heads(0)});
    const LinearTraits shared{.bias = qkv_bias,
                              .cut = kv_heads(0),
                              .partial = PartialGradient::over_heads,
                              .fused_with_previous = true};
    linear(prefix + "attn.k_proj", key, config_.hidden, shared);
    linear(prefix + "attn.v_proj", key, config_.hidden, shared);
    if (layer.attention.qk_norm) {
      for (const char* const which : {"attn.q_norm.weight", "attn.k_norm.weight"}) {
        specs_.push_back(vector(prefix + which, layer.attention.head_dim, Init::ones));
        specs_.back().partial = PartialGradient::over_heads;
      }
    }
    linear(prefix + "attn.o_proj", config_.hidden, query,
           {.bias = config_.biases, .cut = query_heads(1), .init_std = residual_std_});
    norm(prefix + "mlp_norm");
    const bool gated = layer.feed_forward.gated;
    if (gated) {
      linear(prefix + "mlp.gate_proj", layer.feed_forward.width, config_.hidden,
             {.bias = config_.biases, .cut = ffn_features(0)});
    }
    linear(prefix + "mlp.up_proj", layer.feed_forward.width, config_.hidden,
           {.bias = config_.biases, .cut = ffn_features(0), .fused_with_previous = gated});
    linear(prefix + "mlp.down_proj", config_.hidden, layer.feed_forward.width,
           {.bias = config_.biases, .cut = ffn_features(1), .init_std = residual_std_});
  }

  void embedding(const std::string& prefix, std::int64_t rows, const Cut& cut) {
    specs_.push_back({.name = prefix + ".weight",
                      .shape = Shape{rows, config_.hidden},
                      .kind = ParameterKind::embedding,
                      .init_std = base_std,
                      .decay = true,
                      .unit = unit_,
                      .cut = cut});
  }

  /// [out, in], and its bias [out], which is cut with the output features.
  void linear(const std::string& prefix, std::int64_t out, std::int64_t in,
              const LinearTraits& traits) {
    specs_.push_back({.name = prefix + ".weight",
                      .shape = Shape{out, in},
                      .kind = ParameterKind::matrix,
                      .init_std = traits.init_std,
                      .decay = true,
                      .group = traits.group,
                      .unit = unit_,
                      .fused_with_previous = traits.fused_with_previous,
                      .cut = traits.cut,
                      .partial = traits.partial});
    if (traits.bias) {
      ParameterSpec bias = vector(prefix + ".bias", out, Init::zeros);
      bias.fused_with_previous = traits.fused_with_previous;
      bias.cut = traits.cut && traits.cut->dim == 0 ? traits.cut : std::nullopt;
      bias.partial = traits.partial;
      specs_.push_back(std::move(bias));
    }
  }

  void norm(const std::string& prefix) {
    specs_.push_back(vector(prefix + ".weight", config_.hidden, Init::ones));
    specs_.back().partial = PartialGradient::over_rows;
    if (config_.norm.kind == NormTraits::Kind::layer) {
      specs_.push_back(vector(prefix + ".bias", config_.hidden, Init::zeros));
      specs_.back().partial = PartialGradient::over_rows;
    }
  }

  ParameterSpec vector(std::string spec_name, std::int64_t features, Init init) const {
    return {.name = std::move(spec_name),
            .shape = Shape{features},
            .kind = ParameterKind::vector,
            .init = init,
            .unit = unit_};
  }

  void freeze() {
    for (ParameterSpec& spec : specs_) {
      if (std::ranges::any_of(config_.frozen, [&](const std::string& pattern) {
            return matches(pattern, spec.name);
          })) {
        spec.group = OptimizerGroup::frozen;
        spec.decay = false;
      }
    }
  }

  const Architecture& config_;
  float residual_std_;
  int unit_ = 0;
  std::vector<ParameterSpec> specs_;
};

}  // namespace

std::vector<Box> whole_boxes(std::span<const ParameterSpec> table) {
  std::vector<Box> boxes;
  for (const ParameterSpec& spec : table) {
    boxes.push_back(Box::whole(spec.shape));
  }
  return boxes;
}

UnitRange all_units(const Architecture& config) {
  return {0, static_cast<int>(config.layers) + 2};
}

std::vector<ParameterSpec> parameter_table(const Architecture& config) {
  return Table(config).write();
}

void validate_frozen(const Architecture& config) {
  const std::vector<ParameterSpec> table = parameter_table(config);
  std::vector<std::string> names;
  std::ranges::transform(table, std::back_inserter(names), &ParameterSpec::name);
  for (const std::string& pattern : config.frozen) {
    if (std::ranges::none_of(names, [&](const auto& name) { return matches(pattern, name); })) {
      const auto near = nearest(pattern, names);
      throw UserError(ExitCode::config,
                      format_message("model.frozen names \"{}\", which no parameter is called "
                                     "(this model has {}, ..., {}); {}",
                                     pattern, names.front(), names.back(),
                                     near ? format_message("did you mean \"{}\"?", *near)
                                          : "name parameters, with * for any characters"));
    }
  }
  if (std::ranges::none_of(table, &ParameterSpec::is_trainable)) {
    throw UserError(ExitCode::config,
                    "model.frozen names all parameters (nothing would be trained); leave some out");
  }
  const ParameterSpec* before[2] = {};  // the last matrix and the last vector
  for (const ParameterSpec& spec : table) {
    const ParameterSpec*& last = before[spec.is_vector() ? 1 : 0];
    if (spec.fused_with_previous && spec.is_trainable() != last->is_trainable()) {
      throw UserError(ExitCode::config,
                      format_message("model.frozen names one of {} and {} (one matmul reads both); "
                                     "name both or none",
                                     last->name, spec.name));
    }
    last = &spec;
  }
}

std::vector<ParameterSpec> parameter_table(const Architecture& config,
                                           std::span<const UnitRange> held) {
  const int head = all_units(config).end - 1;
  int after = 0;
  for (const UnitRange& units : held) {
    FOURFOLD_EXPECT(after <= units.begin && units.begin < units.end && units.end <= head + 1);
    after = units.end;
  }
  const auto holds = [&](int unit) {
    return std::ranges::any_of(held, [&](const UnitRange& units) { return units.contains(unit); });
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

std::vector<ParameterSpec> parameter_table(const Architecture& config, UnitRange units) {
  return parameter_table(config, std::span(&units, 1));
}

}  // namespace fourfold::model
