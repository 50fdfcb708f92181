// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/regular_file.hpp>
#include <fourfold/data/tokenizer.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::model_conversion {

/// The tokens that begin and end texts, as config.json has them.
struct SpecialTokens {
  std::optional<std::int32_t> bos;
  std::vector<std::int32_t> eos;  ///< generation ends at any of them
};

/// A tokenizer as transformers' AutoTokenizer loads it.
struct HfTokenizer {
  std::vector<FileBytes> files;  ///< by their names in the folder of a model
  SpecialTokens special;
  std::int32_t vocab_size = 0;
  std::vector<std::string> notes;  ///< where transformers differs from us, a line each
};

/// The files of a tokenizer, from the bytes that it was made of. "byte" becomes a tokenizer.json
/// with the same tokens. Files of Hugging Face stay as they are, byte for byte, under the names
/// that transformers looks for (x-vocab.json becomes vocab.json, its merges merges.txt);
/// tokenizer_config.json comes from beside them, or is made; beside a tokenizer.json its class is
/// the generic one, since others may make other tokens of a text. A SentencePiece model stays as it
/// is, too, as tokenizer.model for transformers' LlamaTokenizer.
///
/// A text ends at the tokenizer's end of text, and at the eos_token of tokenizer_config.json where
/// that is another; it begins with the bos_token there, else with an end of text, as in the data.
/// @param tokenizer  asked for the tokens of some texts; it is as before afterwards
/// @param context    of the model, in tokens
/// @throws UserError: data_corrupt for a tokenizer_config.json that is no JSON object, or a file
///   beside that cannot be read
HfTokenizer hf_tokenizer(data::Tokenizer& tokenizer, std::int64_t context);

/// Whether a SentencePiece model is of the type BPE, by trainer_spec.model_type of its ModelProto
/// (sentencepiece_model.proto: 1 unigram, which is the default, 2 BPE, 3 word, 4 char). The library
/// itself does not tell. Text that is no protocol buffer is of none.
bool is_sentencepiece_bpe(std::string_view model);

}  // namespace fourfold::model_conversion
