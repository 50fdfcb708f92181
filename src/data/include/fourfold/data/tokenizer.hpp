// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/data/tokenizer_files.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fourfold::data {

/// Turns tokens into text as they come. What a token prints may depend on those before it (a blank
/// before a word, the rest of a character), so a token decoded by itself is not its part of the
/// text.
class StreamDecoder {
 public:
  /// Appends what one more token prints, or, without one, what is left at the end, as bytes.
  using Take = std::function<void(std::optional<std::int32_t> token, std::string& bytes)>;
  explicit StreamDecoder(Take take) : take_(std::move(take)) {}

  /// The text that is certain after one more token: whole characters, perhaps none.
  /// @throws UserError (data_corrupt) when the token lies outside the vocabulary
  std::string next(std::int32_t token);
  /// What was held back: no further token comes. A character that is cut stays the bytes it is.
  std::string finish();

 private:
  Take take_;
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
  virtual StreamDecoder stream_decoder() const = 0;

  /// The text of `ids`, all that a stream decoder gives for them; where it is cut inside a
  /// character the bytes are given as they are.
  /// @throws UserError (data_corrupt) when an id lies outside [0, vocab_size())
  std::string decode(std::span<const std::int32_t> ids) const;

  /// How many places of the text that encode() took last have no token of their own: unknown tokens
  /// among the `ids` that it gave, or characters and bytes that it left out.
  virtual std::int64_t lost_places(std::span<const std::int32_t> /*ids*/) const { return 0; }

  virtual std::int32_t vocab_size() const noexcept = 0;
  /// The token that ends a document, where the tokenizer has one.
  virtual std::optional<std::int32_t> end_of_text() const noexcept = 0;
  /// One line for people and records: kind, size, file.
  virtual std::string description() const = 0;

  /// What it was made of, with the bytes that were read then.
  const TokenizerFiles& files() const noexcept { return files_; }
  /// Of these files: TokenizerFiles::identity().
  std::string identity() const { return files_.identity(); }

 protected:
  explicit Tokenizer(TokenizerFiles files) : files_(std::move(files)) {}

 private:
  TokenizerFiles files_;
};

/// Byte-level: token b is byte b, 256 is end-of-text; vocab_size() is 257. Any bytes pass
/// unchanged. Decoding writes nothing for end-of-text.
std::unique_ptr<Tokenizer> make_byte_tokenizer();

/// The same tokens as a tokenizer.json, for programs that read files: its numbers mean the same
/// texts, and so its identity is "byte" too. Only text that spells "<|endoftext|>" is encoded
/// otherwise (as 256). Lives as long as the process.
const std::string& byte_tokenizer_json();

/// What a user names: "byte"; a file of any name, whose content tells what it is (a SentencePiece
/// model, a tokenizer.json, a vocab.json with its merges beside it); or a folder, in which
/// tokenizer.json, vocab.json, tokenizer.model and other *.model are tried in this order. Where one
/// that is there cannot be used and a later one can, a warning says so.
/// @throws UserError: config when there is no such file, it is none of these, or uses what is not
///   supported (docs/data.md lists what is); data_corrupt when it is malformed
std::unique_ptr<Tokenizer> open_tokenizer(const std::string& named);

/// The tokenizer that open_tokenizer() gives for a folder; none when it holds none to try.
/// @throws UserError as open_tokenizer when none of them can be used
std::unique_ptr<Tokenizer> open_tokenizer_in(const std::filesystem::path& folder);

/// The identity of what open_tokenizer() gives for a name. No log line; whether a file can be used
/// is not looked at.
/// @throws UserError as read_tokenizer_files, for a folder as open_tokenizer
std::string tokenizer_identity(const std::string& named);

/// The alphabet of byte-level BPE, in which vocabulary files spell bytes as printable
/// characters: the bytes 33-126, 161-172 and 174-255 stand for themselves as code points, the other
/// 68 for U+0100, U+0101, ... in order.
///
/// @return the bytes that `spelled` (UTF-8) means, or nothing when a character is not of the
/// alphabet
std::optional<std::string> bytes_of_spelling(std::string_view spelled);

/// The character that stands for a byte.
std::string spelling_of_byte(unsigned char byte);

}  // namespace fourfold::data
