// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/base/json_text.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/data/token_record.hpp>
#include <fourfold/io/fingerprint.hpp>
#include <fourfold/io/mapped_file.hpp>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace fourfold::data::detail {

/// A JSON file, parsed. Included by *.json.cpp files only.
/// @throws UserError: config when it is missing; as parse_json
inline nlohmann::json parse_json_file(const std::filesystem::path& path) {
  const io::MappedFile file(path);
  return parse_json<nlohmann::json>(file.text(), path.string());
}

}  // namespace fourfold::data::detail

namespace fourfold::data {
namespace {

nlohmann::ordered_json document_of(const TokenRecord& record) {
  return {
      {"format", "fourfold token record 1"},
      {"tokenizer", record.tokenizer},
      {"tokenizer_identity", record.tokenizer_identity},
      {"tokenizer_description", record.tokenizer_description},
      {"vocab_size", record.vocab_size},
      {"end_of_text", record.end_of_text ? nlohmann::ordered_json(*record.end_of_text)
                                         : nlohmann::ordered_json(nullptr)},
      {"end_of_text_appended", record.end_of_text_appended},
      {"tokens", record.tokens},
      {"documents", record.documents},
      {"tokens_digest", record.tokens_digest},
      {"index_digest", record.index_digest},
      {"inputs", record.inputs},
  };
}

/// One that somebody has set otherwise is still a record, if none to be replaced.
constexpr io::OwnFile any_token_record{.mark = "\"format\": \"fourfold token record ",
                                       .maker = own_token_record.maker,
                                       .opening = "{",
                                       .is_anywhere = true};

TokenRecord record_in(const nlohmann::json& document) {
  TokenRecord record;
  document.at("tokenizer").get_to(record.tokenizer);
  record.tokenizer_identity = document.value("tokenizer_identity", "");
  document.at("tokenizer_description").get_to(record.tokenizer_description);
  record.vocab_size = whole_number_of<std::int32_t>(document.at("vocab_size"), 1);
  if (!document.at("end_of_text").is_null()) {
    record.end_of_text = whole_number_of<std::int32_t>(document.at("end_of_text"), 0);
  }
  document.at("end_of_text_appended").get_to(record.end_of_text_appended);
  record.tokens = whole_number_of<std::int64_t>(document.at("tokens"), 0);
  record.documents = whole_number_of<std::int64_t>(document.at("documents"), 0);
  record.tokens_digest = document.value("tokens_digest", "");
  record.index_digest = document.value("index_digest", "");
  document.at("inputs").get_to(record.inputs);
  return record;
}

[[noreturn]] void refuse_pair(const std::filesystem::path& record, const std::string& why) {
  throw UserError(ExitCode::data_corrupt,
                  format_message("{}: {}; the files are of different runs of `fourfold data "
                                 "prepare`, or damaged: prepare them again",
                                 record.string(), why));
}

/// Bytes of a file that belongs to `bin`. Where an older version has recorded no digest, nothing.
void compare(const std::filesystem::path& file, const std::string& digest,
             const std::filesystem::path& bin) {
  const io::MappedFile mapped(file);
  mapped.advise(io::MappedFile::Access::sequential);
  io::Fingerprint bytes;
  bytes.add(mapped.bytes());
  if (!digest.empty() && bytes.str() != digest) {
    refuse_pair(token_record_path(bin),
                format_message("{} does not hold what was prepared", file.string()));
  }
}

}  // namespace

std::string to_json(const TokenRecord& record) {
  return json_text(document_of(record), 2) + "\n";
}

std::filesystem::path token_record_path(const std::filesystem::path& bin) {
  const auto beside = [](std::filesystem::path file) { return file.replace_extension(".json"); };
  constexpr int most_links = 40;  // as the kernel follows
  std::filesystem::path file = bin;
  for (int links = 0; links < most_links; ++links) {
    std::error_code failure;
    if (std::filesystem::exists(std::filesystem::symlink_status(beside(file), failure))) {
      return beside(file);
    }
    if (!std::filesystem::is_symlink(file, failure)) {
      break;
    }
    file = file.parent_path() / std::filesystem::read_symlink(file, failure);
  }
  return beside(bin);
}

std::optional<TokenRecord> read_token_record(const std::filesystem::path& bin) {
  const std::filesystem::path path = token_record_path(bin);
  std::error_code failure;
  const auto status = std::filesystem::status(path, failure);
  if (bin.extension() == ".bin" && std::filesystem::exists(status) &&
      !std::filesystem::is_regular_file(status)) {
    throw UserError(
        ExitCode::config,
        format_message(
            "{}: is no regular file (the record of the token files lies there); move it away",
            path.string()));
  }
  if (bin.extension() == ".bin" && std::filesystem::exists(status) &&
      ::access(path.c_str(), R_OK) != 0) {
    throw UserError(ExitCode::config,
                    format_message("{}: cannot be read ({}), and says which tokenizer made the "
                                   "tokens; ask its owner for the right to",
                                   path.string(), std::generic_category().message(errno)));
  }
  if (bin.extension() != ".bin" || !io::is_own_file(path, any_token_record)) {
    return std::nullopt;
  }
  return read_json(detail::parse_json_file(path), record_in, [&](const std::string& why) {
    throw UserError(
        ExitCode::data_corrupt,
        format_message("{}: is a damaged record of `fourfold data prepare` ({}); prepare the "
                       "tokens again, or move the record away to use them without",
                       path.string(), why));
  });
}

std::optional<TokenRecord> token_record_of(const io::TokenFile& file) {
  auto record = read_token_record(file.path());
  if (record && (record->tokens != file.tokens() ||
                 record->documents != file.documents().value_or(record->documents))) {
    refuse_pair(token_record_path(file.path()),
                format_message("counts {} tokens in {} documents, and {} has {} in {}",
                               record->tokens, record->documents, file.path().string(),
                               file.tokens(), file.documents().value_or(0)));
  }
  return record;
}

void verify_digests(const io::TokenFile& file, const TokenRecord& record) {
  if (file.format() == io::TokenFormat::megatron) {
    compare(file.path(), record.tokens_digest, file.path());
    compare(std::filesystem::path(file.path()).replace_extension(".idx"), record.index_digest,
            file.path());
  }
}

void verify_lone_tokens(const std::filesystem::path& bin, const TokenRecord& record) {
  if (record.tokens_digest.empty()) {
    refuse_pair(token_record_path(bin), format_message("{} has no index beside it", bin.string()));
  }
  compare(bin, record.tokens_digest, bin);
}

}  // namespace fourfold::data
