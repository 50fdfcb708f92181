// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "run_field.hpp"

#include <algorithm>
#include <iterator>

namespace fourfold::runfile {
namespace {

using model::Family;
using model::ModelConfig;
using model::RopeScaling;
using enum OnResume;

bool is_llama(const RunConfig& config) {
  return config.model.family == Family::llama;
}

RunField preset_field() {
  RunField result = field(&RunConfig::preset);
  result.choices = model::preset_names();
  result.choices.emplace_back("");
  return result;
}

std::vector<RunKey> shape_keys() {
  const auto member = [](auto path) { return field(&RunConfig::model, path); };
  const std::string table = "model";
  const double most = 1e9;
  return {
      {.table = table,
       .name = "preset",
       .field = preset_field(),
       .meaning = "A published shape by name; empty: none."},
      {.table = table,
       .name = "family",
       .field = named_field<Family>({Family::gpt2, Family::llama}, &RunConfig::model,
                                    &ModelConfig::family),
       .meaning = "gpt2: layer norm, learned positions, biases, GELU. llama: RMS norm, rotary "
                  "positions, SwiGLU.",
       .on_resume = impossible},
      {.table = table,
       .name = "layers",
       .field = member(&ModelConfig::layers),
       .unit = "blocks",
       .meaning = "Number of transformer blocks.",
       .minimum = 1,
       .maximum = 100000,
       .on_resume = impossible},
      {.table = table,
       .name = "hidden",
       .field = member(&ModelConfig::hidden),
       .meaning = "Width of the residual stream.",
       .minimum = 1,
       .maximum = most,
       .on_resume = impossible},
      {.table = table,
       .name = "heads",
       .field = member(&ModelConfig::heads),
       .meaning = "Attention heads.",
       .minimum = 1,
       .maximum = most,
       .on_resume = impossible},
      {.table = table,
       .name = "kv_heads",
       .field = member(&ModelConfig::kv_heads),
       .meaning = "Heads of keys and values; fewer than heads is grouped-query attention.",
       .minimum = 1,
       .maximum = most,
       .automatic = "model.heads",
       .on_resume = impossible},
      {.table = table,
       .name = "head_dim",
       .field = member(&ModelConfig::head_dim),
       .meaning = "Width of one head.",
       .minimum = 1,
       .maximum = most,
       .automatic = "model.hidden / model.heads",
       .on_resume = impossible},
      {.table = table,
       .name = "ffn",
       .field = member(&ModelConfig::ffn),
       .meaning = "Width inside the feed-forward part.",
       .minimum = 1,
       .maximum = most,
       .automatic = "4 * model.hidden, with llama 8/3 of it rounded up to 64",
       .on_resume = impossible},
      {.table = table,
       .name = "vocab",
       .field = member(&ModelConfig::vocab),
       .unit = "tokens",
       .meaning = "Size of the vocabulary.",
       .minimum = 1,
       .maximum = most,
       .on_resume = impossible},
      {.table = table,
       .name = "context",
       .field = member(&ModelConfig::context),
       .unit = "tokens",
       .meaning = "Length of a sequence.",
       .minimum = 1,
       .maximum = most,
       .on_resume = impossible},
      {.table = table,
       .name = "tie_embeddings",
       .field = member(&ModelConfig::tie_embeddings),
       .meaning = "The language-model head is the token embedding.",
       .on_resume = impossible},
      {.table = table,
       .name = "qkv_bias",
       .field = member(&ModelConfig::qkv_bias),
       .meaning =
           "Biases of the query, key and value products, as Qwen 2 has them; gpt2 always has them.",
       .relevance = {"model.family = \"llama\"", is_llama},
       .on_resume = impossible},
      {.table = table,
       .name = "dropout",
       .field = member(&ModelConfig::dropout),
       .meaning =
           "Probability of dropping an element of the embeddings and of both residual branches.",
       .minimum = 0,
       .maximum = 0.99,
       .on_resume = needs_allowance},
      {.table = table,
       .name = "norm_epsilon",
       .field = member(&ModelConfig::norm_epsilon),
       .meaning = "Added to the variance in the norms.",
       .minimum = 0,
       .above_minimum = true,
       .on_resume = needs_allowance},
      {.table = table,
       .name = "rope_theta",
       .field = field(&RunConfig::model, &ModelConfig::rope_theta),
       .meaning = "Base of the rotary frequencies.",
       .minimum = 1,
       .above_minimum = true,
       .relevance = {"model.family = \"llama\"", is_llama},
       .on_resume = needs_allowance},
  };
}

std::vector<RunKey> rotary_keys() {
  const auto member = [](auto path) {
    return field(&RunConfig::model, &ModelConfig::rope_scaling, path);
  };
  const auto scaled = [](bool llama3_only) {
    return [=](const RunConfig& config) {
      const auto kind = config.model.rope_scaling.kind;
      return is_llama(config) &&
             (llama3_only ? kind == RopeScaling::Kind::llama3 : kind != RopeScaling::Kind::none);
    };
  };
  const std::string table = "model.rope_scaling";
  const Relevance llama{"model.family = \"llama\"", is_llama};
  const Relevance any_scaling{"model.rope_scaling.kind", scaled(false)};
  const Relevance llama3{"model.rope_scaling.kind = \"llama3\"", scaled(true)};
  return {
      {.table = table,
       .name = "kind",
       .field = named_field<RopeScaling::Kind>(
           {RopeScaling::Kind::none, RopeScaling::Kind::linear, RopeScaling::Kind::llama3},
           &RunConfig::model, &ModelConfig::rope_scaling, &RopeScaling::kind),
       .meaning =
           "Stretches rotary frequencies for contexts longer than the model was first trained for.",
       .relevance = llama,
       .on_resume = needs_allowance},
      {.table = table,
       .name = "factor",
       .field = member(&RopeScaling::factor),
       .meaning = "By how much frequencies are stretched.",
       .minimum = 0,
       .above_minimum = true,
       .relevance = any_scaling,
       .on_resume = needs_allowance},
      {.table = table,
       .name = "low_freq_factor",
       .field = member(&RopeScaling::low_freq_factor),
       .meaning = "Wavelengths above original_context / this are stretched in full.",
       .minimum = 0,
       .above_minimum = true,
       .relevance = llama3,
       .on_resume = needs_allowance},
      {.table = table,
       .name = "high_freq_factor",
       .field = member(&RopeScaling::high_freq_factor),
       .meaning = "Wavelengths below original_context / this are kept.",
       .minimum = 0,
       .above_minimum = true,
       .relevance = llama3,
       .on_resume = needs_allowance},
      {.table = table,
       .name = "original_context",
       .field = member(&RopeScaling::original_context),
       .unit = "tokens",
       .meaning = "Context the model was first trained for.",
       .minimum = 1,
       .maximum = 1e9,
       .relevance = llama3,
       .on_resume = needs_allowance},
  };
}

}  // namespace

std::vector<RunKey> model_keys() {
  std::vector<RunKey> keys = shape_keys();
  std::ranges::move(rotary_keys(), std::back_inserter(keys));
  return keys;
}

}  // namespace fourfold::runfile
