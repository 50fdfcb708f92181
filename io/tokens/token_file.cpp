// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "tokens/token_bytes.hpp"

#include <fourfold/base/message.hpp>
#include <fourfold/io/token_file.hpp>

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

namespace fourfold::io {

using detail::corrupt;
using detail::load;
using detail::megatron_header_bytes;

namespace {

static_assert(std::endian::native == std::endian::little, "token files are little-endian");

constexpr std::string_view megatron_magic("MMIDIDX\0\0", 9);
constexpr std::size_t llmc_header_bytes = 1024;
constexpr std::int32_t llmc_magic_u16 = 20240520;
constexpr std::int32_t llmc_magic_u32 = 20240801;

/// The type code of a Megatron index whose header is inside the file.
TokenType type_code_of(const MappedFile& index) {
  constexpr std::size_t offset = 17;
  const auto code = load<std::uint8_t>(index, offset);
  switch (code) {
    case 1:
    case 2:
    case 3:
    case 4:
    case 5:
    case 8:
      return static_cast<TokenType>(code);
    case 6:
    case 7:
      corrupt(index, offset,
              format_message("type code {} means floating-point numbers, not tokens", code));
    default:
      corrupt(index, offset, format_message("type code {} does not exist (1 to 8 do)", code));
  }
}

bool is_file(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(path, ignored);
}

/// What a name without a file was probably meant to be.
void refuse_missing(const std::string& named, const std::string& bin) {
  std::error_code ignored;
  if (std::filesystem::exists(bin, ignored)) {
    return;
  }
  if (std::filesystem::is_directory(named, ignored)) {
    throw UserError(
        ExitCode::config,
        format_message(
            "{}: is a folder, not a token file; name a file in it, or a pattern like {}/*.bin",
            named, named));
  }
  if (is_file(named + "_train.bin")) {
    throw UserError(
        ExitCode::config,
        format_message("{}: there is no such token file, but a {}_train.bin (`fourfold data "
                       "prepare --validation-fraction` makes two of one); name that",
                       named, named));
  }
}

std::filesystem::path bin_of(const std::filesystem::path& path) {
  const std::string text = path.string();
  if (text.ends_with(".idx")) {
    return text.substr(0, text.size() - 4) + ".bin";
  }
  const std::string bin = text.ends_with(".bin") || is_file(path) ? text : text + ".bin";
  refuse_missing(text, bin);
  return bin;
}

/// Whether a file has llm.c's header but for its first number: that one is damaged then.
bool has_llmc_header(const MappedFile& file) {
  const std::size_t bytes = file.bytes().size();
  if (bytes < llmc_header_bytes) {
    return false;
  }
  const auto version = load<std::int32_t>(file, 4);
  const std::size_t tokens = load<std::uint32_t>(file, 8);
  const std::size_t payload_bytes = bytes - llmc_header_bytes;
  return (version == 1 && payload_bytes == tokens * 2) ||
         (version == 7 && payload_bytes == tokens * 4);
}

/// What a file without an index is, that is no file of llm.c either: nothing is damaged then.
void refuse_other_kind(const MappedFile& file) {
  constexpr std::size_t looked_at = 4096;
  const std::span<const std::byte> bytes = file.bytes();
  const auto kind = kind_of_content(bytes);
  const bool is_named = kind && !kind->is_guess;
  const std::string path = file.path().string();
  if (is_plain_text(bytes.first(std::min(bytes.size(), looked_at))) ||
      (is_named && kind->is_text)) {
    throw UserError(ExitCode::config,
                    format_message("{}: is text, not tokens; make token files of it with `fourfold "
                                   "data prepare --output PREFIX {}`, and name these",
                                   path, path));
  }
  if (is_named) {
    throw UserError(ExitCode::config,
                    format_message("{}: is {}, not a file of tokens; name a .bin with its .idx, or "
                                   "one of llm.c (`fourfold data prepare` makes them of text)",
                                   path, kind->name));
  }
  std::filesystem::path index = file.path();
  index.replace_extension(".idx");
  std::error_code failure;
  if (std::filesystem::exists(std::filesystem::symlink_status(index, failure))) {
    throw UserError(ExitCode::config,
                    format_message("{}: the .idx beside it is no regular file, or a link that "
                                   "leads nowhere; put its own there",
                                   path));
  }
  if (bytes.size() >= 4 && !has_llmc_header(file)) {
    throw UserError(
        ExitCode::config,
        format_message("{}: no .idx lies beside it, and it has no header of llm.c (bare tokens, as "
                       "nanoGPT writes them, do not say how many bytes one has); copy its .idx to "
                       "it, or prepare the text again with `fourfold data prepare`",
                       path));
  }
}

}  // namespace

TokenFile::TokenFile(const std::filesystem::path& path) : tokens_file_(bin_of(path)) {
  std::filesystem::path index_path = tokens_file_.path();
  index_path.replace_extension(".idx");
  if (tokens_file_.bytes().empty()) {
    throw UserError(ExitCode::data_corrupt,
                    format_message("{}: is empty (no tokens to train on); prepare it again",
                                   tokens_file_.path().string()));
  }
  if (tokens_file_.path().extension() == ".bin" && is_file(index_path)) {
    open_megatron(index_path);
  } else {
    open_llmc();
  }
}

void TokenFile::open_megatron(const std::filesystem::path& index_path) {
  format_ = TokenFormat::megatron;
  index_file_ = MappedFile(index_path);
  const std::span<const std::byte> index = index_file_.bytes();
  if (index.size() < megatron_header_bytes) {
    corrupt(index_file_, index.size(),
            format_message("ends inside the header of {} bytes", megatron_header_bytes));
  }
  if (std::memcmp(index.data(), megatron_magic.data(), megatron_magic.size()) != 0) {
    corrupt(index_file_, 0, "does not start with MMIDIDX");
  }
  if (const auto version = load<std::uint64_t>(index_file_, 9); version != 1) {
    corrupt(index_file_, 9, format_message("has version {} (only 1 exists)", version));
  }
  type_ = type_code_of(index_file_);
  const auto sequences = load<std::uint64_t>(index_file_, 18);
  const auto boundaries = load<std::uint64_t>(index_file_, 26);
  // Divisions, not products: a hostile count must not wrap around.
  const std::size_t array_bytes = index.size() - megatron_header_bytes;
  if (sequences > array_bytes / 12 || boundaries > (array_bytes - sequences * 12) / 8) {
    corrupt(index_file_, 18,
            format_message("announces {} sequences and {} document boundaries, which need more "
                           "than the {} bytes of the file",
                           sequences, boundaries, index.size()));
  }
  const std::size_t rest = array_bytes - sequences * 12 - boundaries * 8;
  if (rest != 0 && rest != sequences) {  // the modes of a multimodal file are one byte per sequence
    corrupt(index_file_, index.size() - rest,
            format_message("{} bytes follow the arrays of {} sequences and {} boundaries", rest,
                           sequences, boundaries));
  }
  if (sequences == 0 || boundaries < 2) {
    corrupt(index_file_, 18,
            format_message("has {} sequences and {} document boundaries, so no document", sequences,
                           boundaries));
  }
  sequences_ = sequences;
  boundaries_ = boundaries;
  const std::int64_t bytes = std::ssize(tokens_file_.bytes());
  const std::int64_t token_bytes = size_bytes(type_);
  if (bytes % token_bytes != 0) {
    corrupt(tokens_file_, bytes,
            format_message("ends inside a token of {} bytes ({})", token_bytes, name(type_)));
  }
  tokens_ = bytes / token_bytes;
  const std::int64_t indexed = pointer(sequences_ - 1) / token_bytes + length(sequences_ - 1);
  if (pointer(0) != 0 || indexed != tokens_) {
    corrupt(tokens_file_, bytes,
            format_message("ends after {} tokens, but {} ends after {} (they belong to different "
                           "files, or one is truncated)",
                           tokens_, index_path.string(), indexed));
  }
  if (boundary(0) != 0 || boundary(boundaries_ - 1) != sequences_) {
    corrupt(index_file_, megatron_header_bytes + sequences * 12,
            format_message("document boundaries run from {} to {} instead of 0 to {}", boundary(0),
                           boundary(boundaries_ - 1), sequences_));
  }
}

void TokenFile::open_llmc() {
  format_ = TokenFormat::llmc;
  const std::size_t bytes = tokens_file_.bytes().size();
  const std::int32_t magic = bytes < 4 ? 0 : load<std::int32_t>(tokens_file_, 0);
  if (magic != llmc_magic_u16 && magic != llmc_magic_u32) {
    refuse_other_kind(tokens_file_);
    corrupt(tokens_file_, 0,
            format_message("no .idx lies beside it, and its first number is {} instead of the "
                           "llm.c magic {} or {}",
                           magic, llmc_magic_u16, llmc_magic_u32));
  }
  if (bytes < llmc_header_bytes) {
    corrupt(tokens_file_, bytes,
            format_message("ends inside the header of {} bytes", llmc_header_bytes));
  }
  const std::int32_t version = load<std::int32_t>(tokens_file_, 4);
  const std::int32_t expected_version = magic == llmc_magic_u16 ? 1 : 7;
  if (version != expected_version) {
    corrupt(
        tokens_file_, 4,
        format_message("has version {} where magic {} has {}", version, magic, expected_version));
  }
  type_ = magic == llmc_magic_u16 ? TokenType::u16 : TokenType::u32;
  tokens_ = load<std::int32_t>(tokens_file_, 8);
  first_token_offset_ = llmc_header_bytes;
  const std::size_t payload_bytes = bytes - llmc_header_bytes;
  if (tokens_ <= 0 || payload_bytes != tokens_ * size_bytes(type_)) {
    corrupt(tokens_file_, 8,
            format_message("announces {} tokens of {} bytes, but {} bytes follow the header",
                           tokens_, size_bytes(type_), payload_bytes));
  }
}

}  // namespace fourfold::io
