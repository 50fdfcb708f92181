// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/io/atomic_file.hpp>
#include <fourfold/io/fingerprint.hpp>
#include <fourfold/io/token_file.hpp>

#include <cstdint>
#include <filesystem>
#include <iterator>
#include <span>
#include <string>
#include <vector>

namespace fourfold::io {

/// Megatron's rule: u16 when the vocabulary has fewer than 65500 tokens, else i32.
TokenType megatron_type(std::int64_t vocab) noexcept;

/// Writes a Megatron pair `PREFIX.bin` + `PREFIX.idx` (format: token_file.hpp), one sequence per
/// document. Nothing appears under these names before it is published, and an older pair is taken
/// away first by its index, without which no reader takes a .bin for data: at every moment there is
/// the older pair, the new one, or none. Holds 12 bytes of memory per document. One thread per
/// object.
class TokenFileWriter {
 public:
  /// @pre type is u16 or i32
  /// @throws UserError (cannot_write)
  TokenFileWriter(const std::filesystem::path& prefix, TokenType type);

  /// Appends one document. @pre every token is >= 0 and fits the type
  /// @throws UserError (data_corrupt) for a document of more than 2^31 - 1 tokens, which the format
  ///   cannot count; cannot_write
  void add_document(std::span<const std::int32_t> tokens);

  std::int64_t tokens() const noexcept { return tokens_; }
  std::int64_t documents() const noexcept { return std::ssize(lengths_); }

  /// Writes the index and brings both files to the disk: from here on nothing needs room.
  void finish();
  /// Takes an older pair away: what is found after a crash is what a record beside it describes,
  /// whether that is the older one or the new. @pre finish() has been called, here and in the next
  /// ones
  void withdraw_older() const;
  void publish_tokens();
  /// What makes the pair readable. @pre publish_tokens() has been called
  void publish_index();
  /// All of this, for a pair that belongs to no others.
  void publish();

  /// Of the bytes of each file; 32 hexadecimal digits. @pre finish() has been called
  const std::string& tokens_digest() const noexcept { return tokens_digest_; }
  const std::string& index_digest() const noexcept { return index_digest_; }

 private:
  TokenType type_;
  AtomicFile tokens_file_;
  AtomicFile index_file_;
  Fingerprint tokens_bytes_;
  std::string tokens_digest_;
  std::string index_digest_;
  std::vector<std::int32_t> lengths_;
  std::vector<std::uint16_t> narrow_;
  std::int64_t tokens_ = 0;
};

}  // namespace fourfold::io
