// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fourfold::data {

/// Turns text into token numbers in [0, vocab_size()) and back. Not thread-safe: encode may keep a
/// cache of words; use one object per thread.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// Appends the tokens of `text` to `ids`. Nothing is added at either end (no begin- or
  /// end-of-text). `text` should be UTF-8; what each tokenizer does with other bytes is said at its
  /// opener.
  virtual void encode(std::string_view text, std::vector<std::int32_t>& ids) = 0;

  /// The text of `ids`; where it is cut inside a character the bytes are given as they are.
  /// @throws UserError (data_corrupt) when an id lies outside [0, vocab_size())
  virtual std::string decode(std::span<const std::int32_t> ids) const = 0;

  virtual std::int32_t vocab_size() const noexcept = 0;
  /// The token that ends a document, where the tokenizer has one.
  virtual std::optional<std::int32_t> end_of_text() const noexcept = 0;
  /// One line for people and records: kind, size, file.
  virtual std::string description() const = 0;
};

/// Byte-level: token b is byte b, 256 is end-of-text; vocab_size() is 257. Any bytes pass
/// unchanged. Decoding writes nothing for end-of-text.
std::unique_ptr<Tokenizer> make_byte_tokenizer();

/// A SentencePiece .model through libsentencepiece, with its own normalisation (most models turn
/// line ends into spaces). Bytes that are not UTF-8 are read as U+FFFD.
/// @throws UserError: config when missing, data_corrupt when it is not a model
std::unique_ptr<Tokenizer> open_sentencepiece(const std::filesystem::path& model);

/// Byte-level BPE from a Hugging Face tokenizer.json: the GPT-2 and Llama-3 subset (model BPE whose
/// alphabet is bytes, with or without ignore_merges; pre-tokenizers ByteLevel, Split and Sequence;
/// no normaliser; added tokens without stripping). Gives the tokens of the `tokenizers` library
/// with add_special_tokens = false; added tokens that occur in the text are recognised, as there.
/// Bytes that are not UTF-8 are kept: each unbroken run of them is split off and encoded by itself,
/// so decode(encode(x)) == x for all bytes.
/// @throws UserError: config when missing; data_corrupt when malformed; config, naming the
/// component,
///   when the file uses something outside the subset
std::unique_ptr<Tokenizer> open_tokenizer_json(const std::filesystem::path& file);

/// The same from GPT-2's pair of files, with GPT-2's splitting expression.
std::unique_ptr<Tokenizer> open_vocab_and_merges(const std::filesystem::path& vocab_json,
                                                 const std::filesystem::path& merges_txt);

/// What a user names: "byte"; a .model file; a tokenizer.json; a vocab.json with merges.txt beside
/// it; or a folder that holds one of these (looked for in the order tokenizer.json, vocab.json,
/// tokenizer.model).
std::unique_ptr<Tokenizer> open_tokenizer(const std::string& named);

}  // namespace fourfold::data
