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

/// A vocab.json is read as GPT-2's, a SentencePiece model as it is; the files beside it in a folder
/// of transformers may say that it is another class's, or that tokens were added: its tokens would
/// be others than those. A tokenizer.json says all of that itself.
/// @throws UserError (config) naming both files
void refuse_other_claims_beside(const TokenizerFiles& files, const TokenOf& token_of);

/// The same of a vocab.json, whose own entries are its tokens.
void refuse_other_claims_beside(const TokenizerFiles& vocabulary);

}  // namespace fourfold::data::detail
