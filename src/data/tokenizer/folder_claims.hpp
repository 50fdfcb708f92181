// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/data/tokenizer_files.hpp>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace fourfold::data::detail {

/// Of a text that is one token as it stands: its number.
using TokenOf = std::function<std::optional<std::int64_t>(const std::string& text)>;

/// A vocab.json is read as byte-level BPE, a SentencePiece model as it is; files beside it in a
/// folder of transformers may say that it is another class's, or that tokens were added: its tokens
/// would be others than those.
/// @param token_of, end_of_text, adds_prefix_space  what the file makes of texts that is read
/// alone;
///   a prefix space stands before a text's first word
/// @throws UserError (config) naming both files
void refuse_other_claims_beside(const TokenizerFiles& files, const TokenOf& token_of,
                                std::optional<std::int64_t> end_of_text, bool adds_prefix_space);

/// The same of a vocab.json, whose own entries are its tokens.
void refuse_other_claims_beside(const TokenizerFiles& vocabulary);

/// A tokenizer.json says itself what it is. transformers adds tokens to it that the files beside it
/// name; read alone, as the `tokenizers` library does, it has none of them. @return a line on that;
/// empty: they name no others
/// @param is_token  whether a text is one token as it stands
std::string told_of_tokens_beside(const TokenizerFiles& tokenizer_json,
                                  const std::function<bool(const std::string& text)>& is_token);

}  // namespace fourfold::data::detail
