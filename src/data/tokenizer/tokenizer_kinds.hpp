// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/data/tokenizer.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace fourfold::data::detail {

/// A SentencePiece model through libsentencepiece, with its own normalisation (most models turn
/// line ends into spaces). Bytes that are not UTF-8 are read as U+FFFD.
/// @throws UserError: data_corrupt when it is not a model
std::unique_ptr<Tokenizer> make_sentencepiece(TokenizerFiles files);

/// BPE from a Hugging Face tokenizer.json, or from a vocab.json with its merges.
/// docs/data.md lists the components that are supported.
///
/// Gives the tokens and the text of the `tokenizers` library (0.23) with add_special_tokens = false
/// and skip_special_tokens = false; added tokens that occur in the text are recognised and have the
/// numbers that the library gives them. Bytes that are not UTF-8: each unbroken run of them is
/// split off, and what stands around it is encoded as if it stood alone. Byte-level BPE and BPE
/// with a token for each byte encode such a run byte by byte, others as one U+FFFD. With byte-level
/// BPE over all 256 bytes and without a normalizer decode(encode(x)) == x for all bytes.
/// @param warnings  what the user should know is added, a line each
/// @throws UserError: config naming the component when it is not supported; data_corrupt when
///   malformed
std::unique_ptr<Tokenizer> make_bpe(TokenizerFiles files, std::vector<std::string>& warnings);

/// Of a tokenizer that is made of files.
/// @throws UserError (data_corrupt) when the token lies outside its vocabulary
void require_token(std::int32_t token, const Tokenizer& tokenizer);

}  // namespace fourfold::data::detail
