// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace fourfold::data {

/// What lies beside a prepared pair of token files as PREFIX.json: how its tokens came about. Token
/// files of other programs have no such record, and nothing needs one; it names the tokenizer to
/// decode with.
struct TokenRecord {
  std::string tokenizer;  ///< as open_tokenizer takes it: "byte" or an absolute path
  std::string tokenizer_description;
  std::int32_t vocab_size = 0;
  std::optional<std::int32_t> end_of_text;
  bool end_of_text_appended = false;
  std::int64_t tokens = 0;
  std::int64_t documents = 0;
  std::vector<std::string> inputs;

  friend bool operator==(const TokenRecord&, const TokenRecord&) = default;
};

/// The record's text as written to PREFIX.json.
std::string to_json(const TokenRecord& record);

/// The record beside token file `bin`, or nothing when there is none.
/// @throws UserError (data_corrupt) when the file is there but is no record
std::optional<TokenRecord> read_token_record(const std::filesystem::path& bin);

}  // namespace fourfold::data
