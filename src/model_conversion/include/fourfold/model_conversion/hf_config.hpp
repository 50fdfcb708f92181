// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/dtype.hpp>
#include <fourfold/model/architecture.hpp>
#include <fourfold/model_conversion/hf_tokenizer.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::model_conversion {

struct HfModel {
  model::Architecture config;      ///< resolved
  std::vector<std::string> notes;  ///< what it says and does not mean for us, a line each
};

/// The classes of transformers that models are exchanged with.
enum class HfClass : std::uint8_t { gpt2, llama, qwen2, qwen3, smollm3 };

/// The one that computes what such a model does.
/// @throws UserError (config) with the traits where none does
HfClass hf_class_of(const model::Architecture& config);

/// A model from the text of Hugging Face's config.json: model_type gpt2, llama, qwen2, qwen3 or
/// smollm3, as transformers 4 and 5 write them.
/// @param file_name  for messages
/// @throws UserError: config naming key and value for what this program does not compute (another
///   activation, rope type, attention) or what is missing; data_corrupt when it is no JSON
HfModel parse_hf_config(std::string_view text, const std::string& file_name);

/// The config.json with which transformers builds the model, of hf_class_of(config).
/// @param vocab_rows  rows of the embedding, at least config.vocab
/// @param dtype       of the weights beside it
/// @throws UserError (config) naming key and value for what those models cannot be
std::string hf_config_json(const model::Architecture& config, std::int64_t vocab_rows, DType dtype,
                           const SpecialTokens& special = {});

/// The generation_config.json beside it, from which `generate` knows where a text ends.
std::string hf_generation_config_json(const SpecialTokens& special);

}  // namespace fourfold::model_conversion
