// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Published shapes: the GPT-2 paper's four sizes and configurations published with Llama weights.
#include <fourfold/base/error.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/text.hpp>
#include <fourfold/model/presets.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

namespace fourfold::model {
namespace {

struct FamilyTraits {
  Family family;
  NormTraits::Kind norm;
  PositionTraits::Kind positions;
  kernels::Activation activation;
  bool gated;
  bool biases;
};
constexpr std::array traits_of_families{
    FamilyTraits{Family::gpt2, NormTraits::Kind::layer, PositionTraits::Kind::learned,
                 kernels::Activation::gelu_tanh, false, true},
    FamilyTraits{Family::llama, NormTraits::Kind::rms, PositionTraits::Kind::rotary,
                 kernels::Activation::silu, true, false},
};
static_assert(std::ranges::equal(traits_of_families, named_values<Family>, {},
                                 &FamilyTraits::family, &Named<Family>::value),
              "each family has its traits");

Architecture gpt2(std::int64_t layers, std::int64_t hidden, std::int64_t heads) {
  Architecture config;
  set_family(config, Family::gpt2);
  config.layers = layers;
  config.hidden = hidden;
  config.attention.heads = heads;
  return config.resolved();
}

/// @param scaling_factor  0: none; else llama3 scaling
Architecture llama(std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                   std::int64_t kv_heads, std::int64_t ffn, std::int64_t vocab,
                   std::int64_t context, double theta, bool tied = false,
                   double scaling_factor = 0) {
  Architecture config;
  set_family(config, Family::llama);
  config.layers = layers;
  config.hidden = hidden;
  config.attention.heads = heads;
  config.attention.kv_heads = kv_heads;
  config.feed_forward.width = ffn;
  config.vocab = vocab;
  config.context = context;
  config.positions.rope_theta = theta;
  config.tie_embeddings = tied;
  if (scaling_factor > 0) {
    config.positions.rope_scaling = {RopeScaling::Kind::by_wavelength, scaling_factor, 1, 4, 8192};
  }
  return config.resolved();
}

const std::vector<std::pair<std::string, Architecture>>& presets() {
  static const std::vector<std::pair<std::string, Architecture>> all{
      {"gpt2-124m", gpt2(12, 768, 12)},
      {"gpt2-350m", gpt2(24, 1024, 16)},
      {"gpt2-774m", gpt2(36, 1280, 20)},
      {"gpt2-1558m", gpt2(48, 1600, 25)},
      {"llama-15m", llama(6, 288, 6, 6, 768, 32000, 256, 1e4, true)},
      {"llama-2-7b", llama(32, 4096, 32, 32, 11008, 32000, 4096, 1e4)},
      {"llama-3-8b", llama(32, 4096, 32, 8, 14336, 128256, 8192, 5e5)},
      {"llama-3.1-8b", llama(32, 4096, 32, 8, 14336, 128256, 131072, 5e5, false, 8)},
      {"llama-3.2-1b", llama(16, 2048, 32, 8, 8192, 128256, 131072, 5e5, true, 32)},
  };
  return all;
}

}  // namespace

void set_family(Architecture& config, Family family) {
  const FamilyTraits& traits =
      *std::ranges::find(traits_of_families, family, &FamilyTraits::family);
  config.norm.kind = traits.norm;
  config.positions.kind = traits.positions;
  config.feed_forward.activation = traits.activation;
  config.feed_forward.gated = traits.gated;
  config.biases = traits.biases;
}

std::optional<Family> family_of(const Architecture& config) {
  for (const auto& [family, its_name] : named_values<Family>) {
    Architecture with_traits = config;
    set_family(with_traits, family);
    if (with_traits == config) {
      return family;
    }
  }
  return std::nullopt;
}

Family nearest_family(const Architecture& config) {
  const auto unlike = [&](Family family) {
    Architecture with_traits = config;
    set_family(with_traits, family);
    return int{with_traits.norm != config.norm} + int{with_traits.positions != config.positions} +
           int{with_traits.feed_forward.activation != config.feed_forward.activation} +
           int{with_traits.feed_forward.gated != config.feed_forward.gated} +
           int{with_traits.biases != config.biases};
  };
  static constexpr auto families = values_in(named_values<Family>);
  return *std::ranges::min_element(families, {}, unlike);
}

std::string family_name(const Architecture& config) {
  const auto family = family_of(config);
  return family ? std::string(name(*family)) : fmt::format("like {}", name(nearest_family(config)));
}

const std::vector<std::string>& preset_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> result;
    for (const auto& [preset_name, config] : presets()) {
      result.push_back(preset_name);
    }
    return result;
  }();
  return names;
}

Architecture preset(std::string_view preset_name) {
  for (const auto& [known, config] : presets()) {
    if (known == preset_name) {
      return config;
    }
  }
  const auto guess = nearest(preset_name, preset_names());
  throw UserError(
      ExitCode::config,
      format_message("model.preset = \"{}\" is unknown (known are {}); {}", preset_name,
                     fmt::join(preset_names(), ", "),
                     guess ? format_message("did you mean \"{}\"?", *guess) : "use one of these"));
}

}  // namespace fourfold::model
