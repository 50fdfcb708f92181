// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/io/atomic_file.hpp>
#include <fourfold/io/token_file.hpp>

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace fourfold::io {

/// Megatron's rule: u16 when the vocabulary has fewer than 65500 tokens, else i32.
TokenType megatron_type(std::int64_t vocab) noexcept;

/// Writes a Megatron pair `PREFIX.bin` + `PREFIX.idx` (format: token_file.hpp), one sequence per
/// document. Nothing appears under these names before `publish`; an older pair is replaced so that
/// a crash at any moment leaves the old pair, the new pair, or a .bin without .idx, which no reader
/// takes for data. Holds 12 bytes of memory per document. One thread per object.
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
  std::int64_t documents() const noexcept { return static_cast<std::int64_t>(lengths_.size()); }

  /// Writes the index, brings both files to the disk and gives them their names.
  void publish();

 private:
  TokenType type_;
  AtomicFile tokens_file_;
  AtomicFile index_file_;
  std::vector<std::int32_t> lengths_;
  std::vector<std::uint16_t> narrow_;
  std::int64_t tokens_ = 0;
};

}  // namespace fourfold::io
