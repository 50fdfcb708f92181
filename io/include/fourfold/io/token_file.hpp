// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Files of token numbers, little-endian, in the formats that exist:
///
/// - Megatron: `X.bin` holds bare tokens; `X.idx` holds "MMIDIDX\0\0", u64 version 1, u8 type code
///   (1 u8, 2 i8, 3 i16, 4 i32, 5 i64, 6 f64, 7 f32, 8 u16), u64 sequences, u64 boundaries
///   (documents + 1), then, from byte 34 and so unaligned, i32 lengths[sequences],
///   i64 byte pointers[sequences], i64 first sequences of documents[boundaries], and in multimodal
///   files i8 modes[sequences].
/// - llm.c: one file of 256 x i32 header {magic, version, tokens} and then the tokens:
///   20240520 version 1 in u16, 20240801 version 7 in u32.
///
/// Files are untrusted: every count is checked against the size of the file before it is used,
/// every error names the file and the byte offset, and no input can make a read leave the mapping.
#pragma once

#include <fourfold/base/box.hpp>
#include <fourfold/io/mapped_file.hpp>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

namespace fourfold::io {

enum class TokenFormat : std::uint8_t { megatron, llmc };
std::string_view name(TokenFormat format) noexcept;  ///< "Megatron .bin/.idx", "llm.c .bin"

/// How one token is stored. The values below 100 are Megatron's type codes.
enum class TokenType : std::uint8_t {
  u8 = 1,
  i8 = 2,
  i16 = 3,
  i32 = 4,
  i64 = 5,
  u16 = 8,
  u32 = 100
};
std::string_view name(TokenType type) noexcept;  ///< "u16"
std::size_t size_bytes(TokenType type) noexcept;

/// One token file, opened for reading and memory-mapped. Owns its mappings; move-only; const
/// members may be called from several threads at once. Opening costs O(1): the header, the sizes
/// and both ends of the index are checked; `verify_index` checks the rest.
class TokenFile {
 public:
  /// @param path  `X.bin` of either format (Megatron when `X.idx` lies beside it), `X.idx`, or `X`.
  /// @throws UserError: config when the file is missing or unreadable, or is of another kind (text,
  ///   bare tokens without a header, a NumPy array, ...), naming it; data_corrupt when it is empty,
  ///   truncated, carries a wrong magic, version or type, when counts do not fit the sizes, or when
  ///   index and tokens belong to different files.
  explicit TokenFile(const std::filesystem::path& path);

  /// The .bin file.
  const std::filesystem::path& path() const noexcept { return tokens_file_.path(); }
  TokenFormat format() const noexcept { return format_; }
  TokenType type() const noexcept { return type_; }
  std::int64_t tokens() const noexcept { return tokens_; }
  /// Number of documents; nothing for llm.c files, which do not record them.
  std::optional<std::int64_t> documents() const noexcept;

  /// Copies tokens [first, first + out.size()) and checks each one.
  /// @pre 0 <= first and first + out.size() <= tokens()
  /// @throws UserError (data_corrupt) naming file and token when one is negative or >= vocab
  void read(std::int64_t first, std::span<std::int32_t> out,
            std::int64_t vocab = std::int64_t{1} << 31) const;

  /// The tokens of document `document`. @pre documents() and 0 <= document < *documents()
  /// @throws UserError (data_corrupt) when the index entries it needs are wrong
  Range document(std::int64_t document) const;

  /// Checks every entry of the index: sequences lie in the .bin one after the other without gaps,
  /// document boundaries rise from 0 to the number of sequences. O(sequences).
  /// @throws UserError (data_corrupt) naming file and offset
  void verify_index() const;

  void advise(MappedFile::Access access) const noexcept { tokens_file_.advise(access); }
  /// Asks the kernel to read these tokens ahead; does not wait.
  void will_need(Range range) const noexcept;

 private:
  void open_megatron(const std::filesystem::path& index_path);
  void open_llmc();
  std::int64_t length(std::int64_t sequence) const;
  std::int64_t pointer(std::int64_t sequence) const;
  std::int64_t boundary(std::int64_t document) const;

  MappedFile tokens_file_;
  MappedFile index_file_;
  TokenFormat format_ = TokenFormat::megatron;
  TokenType type_ = TokenType::u16;
  std::int64_t tokens_ = 0;
  std::size_t first_token_offset_ = 0;
  std::int64_t sequences_ = 0;
  std::int64_t boundaries_ = 0;
};

// What a file is, told by its first bytes, whatever it is called.

/// A kind of file that is neither plain text nor tokens.
struct ContentKind {
  std::string_view name;    ///< "gzip-compressed", "a Parquet file": what comes after "is"
  std::string_view remedy;  ///< "decompress it first (gzip -d)": what to do to have text
  bool is_text = false;     ///< in another encoding than UTF-8
  bool is_guess = false;    ///< by NUL bytes alone
};

/// The kind of a file that begins with `bytes`, by its format's own signature; nothing for text and
/// for what is not known. Hand over 64 KiB where the file has as much: text in UTF-16 without a
/// mark, and what is binary without a signature, show by NUL bytes there.
std::optional<ContentKind> kind_of_content(std::span<const std::byte> bytes);

/// Whether `bytes`, which a character may be cut off at the end of, are UTF-8 without control
/// characters but those that texts have (tabs, line and page ends, escapes).
bool is_plain_text(std::span<const std::byte> bytes);

}  // namespace fourfold::io
