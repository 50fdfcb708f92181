// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/kernels/attention.hpp>
#include <fourfold/model/architecture.hpp>
#include <fourfold/model/parameter_table.hpp>

#include <cmath>

namespace fourfold::model {
namespace {

[[noreturn]] void refuse(const std::string& message) {
  throw UserError(ExitCode::config, message);
}

/// Sizes end where 32-bit token numbers, positions and product extents still have room.
constexpr std::int64_t largest_size = 1'000'000'000;

void require_size(const char* key, std::int64_t value) {
  if (value <= 0) {
    refuse(format_message(
        "model.{} = {} is not positive (a size must be at least 1); set it to 1 or more", key,
        value));
  }
  if (value > largest_size) {
    refuse(format_message("model.{} = {} is too large (sizes end at {}); set a smaller one", key,
                          value, largest_size));
  }
}

/// The divisor of `total` that is nearest to `wanted`.
std::int64_t nearest_divisor(std::int64_t total, std::int64_t wanted) {
  for (std::int64_t distance = 0; distance < total; ++distance) {
    for (const std::int64_t candidate : {wanted - distance, wanted + distance}) {
      if (candidate >= 1 && candidate <= total && total % candidate == 0) {
        return candidate;
      }
    }
  }
  return 1;
}

void validate_heads(const Architecture& config) {
  if (config.attention.heads % config.attention.kv_heads != 0) {
    refuse(
        format_message("model.kv_heads = {} does not divide model.heads = {} (each key/value head "
                       "serves the same number of query heads); set kv_heads to {}",
                       config.attention.kv_heads, config.attention.heads,
                       nearest_divisor(config.attention.heads, config.attention.kv_heads)));
  }
  if (config.positions.are_rotary() && config.attention.head_dim % 2 != 0) {
    refuse(
        format_message("model.head_dim = {} is odd (rotary positions turn pairs of features); set "
                       "head_dim to {} or change heads",
                       config.attention.head_dim, config.attention.head_dim + 1));
  }
}

void validate_rope(const Architecture& config) {
  const RopeScaling& scaling = config.positions.rope_scaling;
  if (!(config.positions.rope_theta > 1) || !std::isfinite(config.positions.rope_theta)) {
    refuse(format_message(
        "model.rope_theta = {} is not above 1 (it is the base of the wavelengths); set it to 10000",
        config.positions.rope_theta));
  }
  if (scaling.kind == RopeScaling::Kind::none) {
    return;
  }
  if (!(scaling.factor >= 1) || !std::isfinite(scaling.factor)) {
    refuse(
        format_message("model.rope_scaling.factor = {} is below 1 (scaling stretches the context); "
                       "set it to 1 or more",
                       scaling.factor));
  }
  if (scaling.kind == RopeScaling::Kind::by_wavelength) {
    if (!(scaling.low_freq_factor > 0) || !(scaling.high_freq_factor > scaling.low_freq_factor)) {
      refuse(
          format_message("model.rope_scaling.high_freq_factor = {} is not above low_freq_factor = "
                         "{} (wavelengths between the two are interpolated); set them to 4 and 1",
                         scaling.high_freq_factor, scaling.low_freq_factor));
    }
    require_size("rope_scaling.original_context", scaling.original_context);
  }
}

void validate_traits(const Architecture& config) {
  if (config.positions.are_rotary()) {
    validate_rope(config);
  } else if (config.positions.rope_scaling.kind != RopeScaling::Kind::none) {
    refuse(
        format_message("model.rope_scaling is set, and model.positions = \"{}\" (no frequency is "
                       "scaled); remove it, or set model.positions to \"rotary\"",
                       name(config.positions.kind)));
  }
  if (config.positions.no_rope_interval < 0) {
    refuse(
        format_message("model.no_rope_interval = {} is negative (it counts layers); set it to 0 "
                       "for rotary positions in all of them",
                       config.positions.no_rope_interval));
  }
  if (config.biases && config.attention.qkv_bias) {
    refuse("model.qkv_bias is set, and model.biases gives these biases already; remove it");
  }
}

}  // namespace

LayerTraits Architecture::layer(std::int64_t index) const {
  FOURFOLD_EXPECT(0 <= index && index < layers);
  LayerTraits result{norm, positions, attention, feed_forward};
  const std::int64_t interval = positions.no_rope_interval;
  const bool turns = positions.are_rotary() && (interval == 0 || (index + 1) % interval != 0);
  if (!turns) {
    result.positions = PositionTraits{};
    result.positions.kind = PositionTraits::Kind::none;
  }
  return result;
}

Architecture Architecture::resolved() const {
  Architecture result = *this;
  require_size("hidden", hidden);
  require_size("heads", attention.heads);
  if (attention.head_dim == 0) {
    if (hidden % attention.heads != 0) {
      refuse(
          format_message("model.heads = {} does not divide model.hidden = {} (each head takes the "
                         "same number of features); set heads to {} or give head_dim",
                         attention.heads, hidden, nearest_divisor(hidden, attention.heads)));
    }
    result.attention.head_dim = hidden / attention.heads;
  }
  if (attention.kv_heads == 0) {
    result.attention.kv_heads = attention.heads;
  }
  if (feed_forward.width == 0) {
    const std::int64_t two_thirds = (8 * hidden / 3 + 63) / 64 * 64;
    result.feed_forward.width = feed_forward.gated ? two_thirds : 4 * hidden;
  }
  result.validate();
  return result;
}

void Architecture::validate() const {
  require_size("layers", layers);
  require_size("hidden", hidden);
  require_size("heads", attention.heads);
  require_size("kv_heads", attention.kv_heads);
  require_size("head_dim", attention.head_dim);
  require_size("ffn", feed_forward.width);
  require_size("vocab", vocab);
  require_size("context", context);
  if (!(dropout >= 0 && dropout < 1)) {
    refuse(
        format_message("model.dropout = {} is not in [0, 1) (it is the share of elements set to "
                       "zero); set it to 0 or, say, 0.1",
                       dropout));
  }
  if (!(norm.epsilon > 0 && norm.epsilon < 1)) {
    refuse(
        format_message("model.norm_epsilon = {} is not in (0, 1) (it keeps norms of zero rows "
                       "finite); set it to 1e-5",
                       norm.epsilon));
  }
  validate_heads(*this);
  validate_traits(*this);
  if (!frozen.empty()) {
    validate_frozen(*this);
  }
}

void validate_for_device(const Architecture& config) {
  const std::int64_t most = kernels::most_head_dim();
  if (config.attention.head_dim > most) {
    refuse(
        format_message("model.head_dim = {} is above {} (the most that attention on GPUs takes; it "
                       "is model.hidden / model.heads where nothing is said); set it to {} or "
                       "less, or take more heads",
                       config.attention.head_dim, most, most));
  }
}

std::int64_t parameter_count(const Architecture& config) {
  std::int64_t count = 0;
  for (const ParameterSpec& spec : parameter_table(config)) {
    count += spec.shape.elements();
  }
  return count;
}

std::int64_t product_parameter_count(const Architecture& config) {
  std::int64_t count = config.tie_embeddings ? config.vocab * config.hidden : 0;  // as head
  for (const ParameterSpec& spec : parameter_table(config)) {
    count += spec.kind == ParameterKind::matrix ? spec.shape.elements() : 0;
  }
  return count;
}

double flops_per_token(const Architecture& config, std::int64_t tokens) {
  const auto products = static_cast<double>(product_parameter_count(config));
  double attention_features = 0;
  for (std::int64_t i = 0; i < config.layers; ++i) {
    const AttentionTraits attention = config.layer(i).attention;
    attention_features += static_cast<double>(attention.heads * attention.head_dim);
  }
  return 6 * products + 6 * attention_features * static_cast<double>(tokens);
}

}  // namespace fourfold::model
