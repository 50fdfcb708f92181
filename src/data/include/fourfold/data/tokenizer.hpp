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

/// Turns tokens into text as they come. What a token prints may depend on those before it (a blank
/// before a word, the rest of a character), so a token decoded by itself is not its part of the
/// text.
class StreamDecoder {
 public:
  virtual ~StreamDecoder() = default;

  /// The text that is certain after one more token: whole characters, perhaps none.
  /// @throws UserError (data_corrupt) when the token lies outside the vocabulary
  std::string next(std::int32_t token);
  /// What was held back: no further token comes. A character that is cut stays the bytes it is.
  std::string finish();

 protected:
  /// Append what one more token prints, or what is left at the end, as bytes.
  virtual void take(std::int32_t token, std::string& bytes) = 0;
  virtual void end(std::string& bytes) = 0;

 private:
  std::string held_;  ///< the beginning of a character
};

/// Turns text into token numbers in [0, vocab_size()) and back. Not thread-safe: encode may keep a
/// cache of words; use one object per thread.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  /// Appends the tokens of `text` to `ids`. Nothing is added at either end (no begin- or
  /// end-of-text). `text` should be UTF-8; what each tokenizer does with other bytes is said at its
  /// opener.
  virtual void encode(std::string_view text, std::vector<std::int32_t>& ids) = 0;

  /// A decoder at the beginning of a text. The tokenizer must outlive it.
  virtual std::unique_ptr<StreamDecoder> stream_decoder() const = 0;

  /// The text of `ids`, all that a stream decoder gives for them; where it is cut inside a
  /// character the bytes are given as they are.
  /// @throws UserError (data_corrupt) when an id lies outside [0, vocab_size())
  std::string decode(std::span<const std::int32_t> ids) const;

  virtual std::int32_t vocab_size() const noexcept = 0;
  /// The token that ends a document, where the tokenizer has one.
  virtual std::optional<std::int32_t> end_of_text() const noexcept = 0;
  /// One line for people and records: kind, size, file.
  virtual std::string description() const = 0;
};

/// Byte-level: token b is byte b, 256 is end-of-text; vocab_size() is 257. Any bytes pass
/// unchanged. Decoding writes nothing for end-of-text.
std::unique_ptr<Tokenizer> make_byte_tokenizer();

/// A SentencePiece model through libsentencepiece, with its own normalisation (most models turn
/// line ends into spaces). Bytes that are not UTF-8 are read as U+FFFD.
/// @throws UserError: config when missing, data_corrupt when it is not a model
std::unique_ptr<Tokenizer> open_sentencepiece(const std::filesystem::path& model);

/// BPE from a Hugging Face tokenizer.json, or from GPT-2's vocab.json with its merges beside it;
/// the file's content tells which. docs/data.md lists the components that are supported.
///
/// Gives the tokens and the text of the `tokenizers` library (0.23) with add_special_tokens = false
/// and skip_special_tokens = false; added tokens that occur in the text are recognised and have the
/// numbers that the library gives them. Bytes that are not UTF-8: each unbroken run of them is
/// split off, and what stands around it is encoded as if it stood alone. Byte-level BPE and BPE
/// with a token for each byte encode such a run byte by byte, others as one U+FFFD. With byte-level
/// BPE over all 256 bytes and without a normalizer decode(encode(x)) == x for all bytes.
/// @throws UserError: config when missing, or naming the component when it is not supported;
///   data_corrupt when malformed
std::unique_ptr<Tokenizer> open_bpe(const std::filesystem::path& file);

/// What a user names: "byte"; a file of any name, whose content tells what it is (a SentencePiece
/// model, a tokenizer.json, a vocab.json); or a folder, in which tokenizer.json, vocab.json,
/// tokenizer.model and other *.model are tried in this order. Where one that is there cannot be
/// used and a later one can, a warning says so.
/// @throws UserError: config when there is no such file or it is none of these; as the openers
std::unique_ptr<Tokenizer> open_tokenizer(const std::string& named);

/// The file that open_tokenizer() uses for a folder; nothing when the folder holds none to try.
/// @throws UserError as open_tokenizer when none of them can be used
std::optional<std::filesystem::path> tokenizer_in(const std::filesystem::path& folder);

/// What makes two tokenizers the same, wherever their files are: "byte", or a digest of what the
/// file holds, with that of the merges where they have a file of their own.
/// @throws UserError: config when there is no such file; as open_tokenizer for a folder
std::string tokenizer_identity(const std::string& named);

}  // namespace fourfold::data
