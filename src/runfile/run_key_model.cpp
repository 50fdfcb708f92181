// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "run_field.hpp"

#include <fourfold/model/presets.hpp>

namespace fourfold::runfile {
namespace {

using model::Architecture;
using model::AttentionTraits;
using model::Family;
using model::FeedForwardTraits;
using model::NormTraits;
using model::PositionTraits;
using model::RopeScaling;
using enum OnResume;

constexpr double most = 1e9;

bool is_rotary(const RunConfig& config) {
  return config.model.positions.are_rotary();
}

RunField member(auto... path) {
  return field(&RunConfig::model, path...);
}

RunField scaling_member(auto path) {
  return member(&Architecture::positions, &PositionTraits::rope_scaling, path);
}

/// The traits that a family has. It is read before the keys that change one of them.
RunField family_field() {
  return text_field(
      names_in(named_values<Family>),
      [](const RunConfig& config) { return std::string(name(nearest_family(config.model))); },
      [](RunConfig& config, const std::string& text) {
        set_family(config.model, *value_named<Family>(text));
      });
}

RunField preset_field() {
  RunField result = field(&RunConfig::preset);
  result.choices = model::preset_names();
  result.choices.emplace_back("");
  return result;
}

}  // namespace

std::vector<RunKey> model_keys() {
  const Relevance rotary{"model.positions = \"rotary\"", is_rotary};
  return {
      {.name = "preset",
       .field = preset_field(),
       .meaning = "A published shape by name; empty: none."},
      {.name = "family",
       .field = family_field(),
       .meaning = "The traits below as a family has them; a key beside it changes one (on the "
                  "command line, a family replaces those of the run file). gpt2: norm layer, "
                  "positions learned, activation gelu_tanh, not gated, biases. llama: norm "
                  "rms, positions rotary, activation silu, gated, no biases.",
       .on_resume = impossible},
      {.name = "norm",
       .field = named_field(&RunConfig::model, &Architecture::norm, &NormTraits::kind),
       .meaning = "layer: mean and variance, a weight and a bias. rms: root mean square, a weight.",
       .on_resume = impossible},
      {.name = "positions",
       .field = named_field(&RunConfig::model, &Architecture::positions, &PositionTraits::kind),
       .meaning = "learned: a row of a table is added to each embedding. rotary: queries and keys "
                  "are turned (RoPE). none: nothing.",
       .on_resume = impossible},
      {.name = "no_rope_interval",
       .field = member(&Architecture::positions, &PositionTraits::no_rope_interval),
       .unit = "layers",
       .meaning = "Of so many layers the last has no positions; 0: all have them.",
       .minimum = 0,
       .maximum = 100000,
       .relevance = rotary,
       .on_resume = needs_allowance},
      {.name = "activation",
       .field = named_field(&RunConfig::model, &Architecture::feed_forward,
                            &FeedForwardTraits::activation),
       .meaning = "gelu_tanh: GELU by its tanh formula. silu: x / (1 + e^-x).",
       .on_resume = needs_allowance},
      {.name = "gated",
       .field = member(&Architecture::feed_forward, &FeedForwardTraits::gated),
       .meaning = "down(activation(gate(x)) * up(x)), which is SwiGLU with silu and GeGLU with "
                  "gelu_tanh, instead of down(activation(up(x))).",
       .on_resume = impossible},
      {.name = "biases",
       .field = member(&Architecture::biases),
       .meaning = "All linear layers of the blocks have biases.",
       .on_resume = impossible},
      {.name = "layers",
       .field = member(&Architecture::layers),
       .unit = "blocks",
       .meaning = "Number of transformer blocks.",
       .minimum = 1,
       .maximum = 100000,
       .on_resume = impossible},
      {.name = "hidden",
       .field = member(&Architecture::hidden),
       .meaning = "Width of the residual stream.",
       .minimum = 1,
       .maximum = most,
       .on_resume = impossible},
      {.name = "heads",
       .field = member(&Architecture::attention, &AttentionTraits::heads),
       .meaning = "Attention heads.",
       .minimum = 1,
       .maximum = most,
       .on_resume = impossible},
      {.name = "kv_heads",
       .field = member(&Architecture::attention, &AttentionTraits::kv_heads),
       .meaning = "Heads of keys and values; fewer than heads is grouped-query attention.",
       .minimum = 1,
       .maximum = most,
       .automatic = "model.heads",
       .on_resume = impossible},
      {.name = "head_dim",
       .field = member(&Architecture::attention, &AttentionTraits::head_dim),
       .meaning = "Width of one head.",
       .minimum = 1,
       .maximum = most,
       .automatic = "model.hidden / model.heads",
       .on_resume = impossible},
      {.name = "ffn",
       .field = member(&Architecture::feed_forward, &FeedForwardTraits::width),
       .meaning = "Width inside the feed-forward part.",
       .minimum = 1,
       .maximum = most,
       .automatic = "4 * model.hidden; with model.gated 8/3 of model.hidden rounded up to 64",
       .on_resume = impossible},
      {.name = "vocab",
       .field = member(&Architecture::vocab),
       .unit = "tokens",
       .meaning = "Size of the vocabulary. If you leave it out, and preset too, it is that of the "
                  "checkpoint that the run begins with or goes on from, else what the "
                  "record beside the token files says, rounded up to a multiple of 64. Less is "
                  "refused; more than 5 % above it, and above that multiple, is warned of.",
       .minimum = 1,
       .maximum = most,
       .on_resume = impossible},
      {.name = "context",
       .field = member(&Architecture::context),
       .unit = "tokens",
       .meaning = "Length of a sequence.",
       .minimum = 1,
       .maximum = most,
       .on_resume = impossible},
      {.name = "tie_embeddings",
       .field = member(&Architecture::tie_embeddings),
       .meaning = "The language-model head is the token embedding.",
       .on_resume = impossible},
      {.name = "frozen",
       .field = member(&Architecture::frozen),
       .meaning = "Names of parameters that are not trained and keep their bits, with * for any "
                  "characters: \"embedding.*\", \"layers.0.*\". Of matrices that one matmul "
                  "reads (query, key and value; gate and up), all or none.",
       .on_resume = impossible},
      {.name = "qkv_bias",
       .field = member(&Architecture::attention, &AttentionTraits::qkv_bias),
       .meaning = "Biases of the query, key and value products alone, as Qwen 2 has them.",
       .relevance = {"model.biases = false",
                     [](const RunConfig& config) { return !config.model.biases; }},
       .on_resume = impossible},
      {.name = "qk_norm",
       .field = member(&Architecture::attention, &AttentionTraits::qk_norm),
       .meaning = "RMS norms of the queries and keys of each head, as Qwen 3 has them.",
       .on_resume = impossible},
      {.name = "dropout",
       .field = member(&Architecture::dropout),
       .meaning =
           "Probability of dropping an element of the embeddings and of both residual branches.",
       .minimum = 0,
       .maximum = 0.99,
       .on_resume = needs_allowance},
      {.name = "norm_epsilon",
       .field = member(&Architecture::norm, &NormTraits::epsilon),
       .meaning = "Added to the variance in the norms.",
       .minimum = 0,
       .above_minimum = true,
       .on_resume = needs_allowance},
      {.name = "rope_theta",
       .field = member(&Architecture::positions, &PositionTraits::rope_theta),
       .meaning = "Base of the rotary frequencies.",
       .minimum = 1,
       .above_minimum = true,
       .relevance = rotary,
       .on_resume = needs_allowance},
  };
}

std::vector<RunKey> rope_scaling_keys() {
  const Relevance rotary{"model.positions = \"rotary\"", is_rotary};
  const Relevance any_scaling{"model.rope_scaling.kind", [](const RunConfig& config) {
                                return is_rotary(config) &&
                                       config.model.positions.rope_scaling.kind !=
                                           RopeScaling::Kind::none;
                              }};
  const Relevance llama3{"model.rope_scaling.kind = \"llama3\"", [](const RunConfig& config) {
                           return is_rotary(config) && config.model.positions.rope_scaling.kind ==
                                                           RopeScaling::Kind::by_wavelength;
                         }};
  return {
      {.name = "kind",
       .field = named_field(&RunConfig::model, &Architecture::positions,
                            &PositionTraits::rope_scaling, &RopeScaling::kind),
       .meaning =
           "Stretches rotary frequencies for contexts longer than the model was first trained for.",
       .relevance = rotary,
       .on_resume = needs_allowance},
      {.name = "factor",
       .field = scaling_member(&RopeScaling::factor),
       .meaning = "By how much frequencies are stretched.",
       .minimum = 0,
       .above_minimum = true,
       .relevance = any_scaling,
       .on_resume = needs_allowance},
      {.name = "low_freq_factor",
       .field = scaling_member(&RopeScaling::low_freq_factor),
       .meaning = "Wavelengths above original_context / this are stretched in full.",
       .minimum = 0,
       .above_minimum = true,
       .relevance = llama3,
       .on_resume = needs_allowance},
      {.name = "high_freq_factor",
       .field = scaling_member(&RopeScaling::high_freq_factor),
       .meaning = "Wavelengths below original_context / this are kept.",
       .minimum = 0,
       .above_minimum = true,
       .relevance = llama3,
       .on_resume = needs_allowance},
      {.name = "original_context",
       .field = scaling_member(&RopeScaling::original_context),
       .unit = "tokens",
       .meaning = "Context the model was first trained for.",
       .minimum = 1,
       .maximum = 1e9,
       .relevance = llama3,
       .on_resume = needs_allowance},
  };
}

}  // namespace fourfold::runfile
