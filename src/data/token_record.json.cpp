// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "json_file.json.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/data/token_record.hpp>

#include <fmt/format.h>

namespace fourfold::data {
namespace {

TokenRecord record_of(const nlohmann::json& document) {
  TokenRecord record;
  document.at("tokenizer").get_to(record.tokenizer);
  document.at("tokenizer_description").get_to(record.tokenizer_description);
  document.at("vocab_size").get_to(record.vocab_size);
  if (!document.at("end_of_text").is_null()) {
    record.end_of_text = document.at("end_of_text").get<std::int32_t>();
  }
  document.at("end_of_text_appended").get_to(record.end_of_text_appended);
  document.at("tokens").get_to(record.tokens);
  document.at("documents").get_to(record.documents);
  document.at("inputs").get_to(record.inputs);
  return record;
}

}  // namespace

std::string to_json(const TokenRecord& record) {
  const nlohmann::ordered_json document{
      {"format", "fourfold token record 1"},
      {"tokenizer", record.tokenizer},
      {"tokenizer_description", record.tokenizer_description},
      {"vocab_size", record.vocab_size},
      {"end_of_text", record.end_of_text ? nlohmann::ordered_json(*record.end_of_text)
                                         : nlohmann::ordered_json(nullptr)},
      {"end_of_text_appended", record.end_of_text_appended},
      {"tokens", record.tokens},
      {"documents", record.documents},
      {"inputs", record.inputs},
  };
  // File names need not be UTF-8; JSON has to be.
  return json_text(document, 2) + "\n";
}

std::optional<TokenRecord> read_token_record(const std::filesystem::path& bin) {
  std::filesystem::path path = bin;
  path.replace_extension(".json");
  std::error_code ignored;
  if (bin.extension() != ".bin" || !std::filesystem::is_regular_file(path, ignored)) {
    return std::nullopt;
  }
  return read_json(detail::parse_json_file(path), record_of, [&](const std::string& why) {
    throw UserError(
        ExitCode::data_corrupt,
        fmt::format(
            "{}: is not a record of `fourfold data prepare` ({}); move the file away or prepare "
            "the tokens again",
            path.string(), why));
  });
}

}  // namespace fourfold::data
