// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/io/own_file.hpp>
#include <fourfold/io/token_file.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace fourfold::data {

/// What lies beside a prepared pair of token files as PREFIX.json: how its tokens came about. Token
/// files of other programs have no such record.
struct TokenRecord {
  std::string tokenizer;  ///< TokenizerFiles::name() of the tokenizer that made the tokens
  /// And its identity, of the bytes that it was made of; empty in records of older versions
  std::string tokenizer_identity;
  std::string tokenizer_description;
  std::int32_t vocab_size = 0;
  std::optional<std::int32_t> end_of_text;
  bool end_of_text_appended = false;
  std::int64_t tokens = 0;
  std::int64_t documents = 0;
  /// Of the bytes of PREFIX.bin and PREFIX.idx (io::Fingerprint); empty in records of older
  /// versions
  std::string tokens_digest;
  std::string index_digest;
  std::vector<std::string> inputs;

  friend bool operator==(const TokenRecord&, const TokenRecord&) = default;
};

/// How a record is told from other JSON files of its name.
inline constexpr io::OwnFile own_token_record{"{\n  \"format\": \"fourfold token record ",
                                              "fourfold data prepare"};

/// The record's text as written to PREFIX.json. Names that are no UTF-8, which JSON has to be, come
/// with replacement characters.
std::string to_json(const TokenRecord& record);

/// Where the record of token file `bin` is, or would be: beside it, or, for a link with nothing
/// beside it, beside what the link leads to, which may be a link, too.
std::filesystem::path token_record_path(const std::filesystem::path& bin);

/// The record beside token file `bin`, or nothing when there is none, or only a file of another
/// program by that name.
/// @throws UserError: data_corrupt when the record is damaged; config when it cannot be read, or is
///   no regular file
std::optional<TokenRecord> read_token_record(const std::filesystem::path& bin);

/// The record of an open token file.
/// @throws UserError (data_corrupt) also when it counts other tokens or documents than the file
/// has:
///   they do not belong together
std::optional<TokenRecord> token_record_of(const io::TokenFile& file);

/// Reads the pair as a whole and compares it with its record's digests, where it has them.
/// @throws UserError (data_corrupt)
void verify_digests(const io::TokenFile& file, const TokenRecord& record);

/// The same of a .bin that has no index: a preparation was ended before it published that.
/// @throws UserError (data_corrupt) also where the record has no digest of it
void verify_lone_tokens(const std::filesystem::path& bin, const TokenRecord& record);

}  // namespace fourfold::data
