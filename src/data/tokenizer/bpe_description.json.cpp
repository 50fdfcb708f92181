// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/bpe_description.hpp"

#include "tokenizer/tokenizer_fields.json.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/json_text.hpp>
#include <fourfold/base/message.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>

namespace fourfold::data::detail {
namespace {

using nlohmann::json;

/// Token files hold 32 bits with a sign, and the size of a vocabulary is one more.
constexpr std::int32_t largest_id = std::numeric_limits<std::int32_t>::max() - 1;

std::int32_t id_of(const std::filesystem::path& file, const json& value, const std::string& token) {
  const auto id = whole_number_if_any<std::int32_t>(value, 0, largest_id);
  if (!id) {
    damaged(file, format_message("token '{}' has the number {} instead of one from 0 to {}", token,
                                 json_text(value), largest_id));
  }
  return *id;
}

void read_vocab(const json& vocab, BpeDescription& description) {
  if (!vocab.is_object()) {
    damaged(description.file, "the vocabulary is missing or not an object");
  }
  if (vocab.empty()) {
    unsupported(description.file, "an empty vocabulary");
  }
  for (const auto& [token, id] : vocab.items()) {
    description.vocab.emplace_back(token, id_of(description.file, id, token));
  }
}

/// "a b" cut at its only space.
std::pair<std::string, std::string> merge_of(const std::filesystem::path& file,
                                             std::string_view text, std::size_t number) {
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos || space == 0 || space + 1 == text.size() ||
      text.find(' ', space + 1) != std::string_view::npos) {
    damaged(file, format_message("merge {} is '{}' instead of two tokens with a space between",
                                 number, text));
  }
  return {std::string(text.substr(0, space)), std::string(text.substr(space + 1))};
}

void read_merges(const json& merges, BpeDescription& description) {
  if (!merges.is_array()) {
    damaged(description.file, "the merges are missing or not a list");
  }
  for (const json& merge : merges) {
    const std::size_t number = description.merges.size();
    if (merge.is_string() && merge.get_ref<const std::string&>().starts_with("#version")) {
      continue;  // the first line of a merges.txt
    }
    if (merge.is_string()) {
      description.merges.push_back(merge_of(description.file, merge.get<std::string>(), number));
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
               merge[1].is_string()) {
      description.merges.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
    } else {
      damaged(description.file,
              format_message("merge {} is {} instead of two tokens", number, json_text(merge)));
    }
  }
}

void read_model(const json& model, BpeDescription& description) {
  const std::filesystem::path& file = description.file;
  if (!model.is_object()) {
    damaged(file, "'model' is missing");
  }
  const json& type = member(model, "type");
  if (type.is_string() && type != "BPE") {
    unsupported(file, format_message("a model of type {}", type.get<std::string>()));
  }
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const json& affix = member(model, key);
    if (affix.is_string() && !affix.get<std::string>().empty()) {
      unsupported(file, format_message("{} '{}'", key, affix.get<std::string>()));
    }
  }
  if (const json& dropout = member(model, "dropout"); dropout.is_number() && dropout != 0) {
    unsupported(file, "dropout of merges");
  }
  description.ignore_merges = is_set(model, "ignore_merges");
  description.byte_fallback = is_set(model, "byte_fallback");
  description.fuse_unknown = is_set(model, "fuse_unk");
  if (!member(model, "unk_token").is_null()) {
    description.unknown_token = text_of(file, model, "unk_token");
  }
  read_vocab(member(model, "vocab"), description);
  read_merges(member(model, "merges"), description);
}

void read_added_tokens(const json& tokens, BpeDescription& description) {
  const std::filesystem::path& file = description.file;
  if (tokens.is_null()) {
    return;
  }
  if (!tokens.is_array()) {
    damaged(file, "'added_tokens' is not a list");
  }
  for (const json& token : tokens) {
    if (!token.is_object()) {
      damaged(file, "an entry of 'added_tokens' is not an object");
    }
    AddedToken added{.content = text_of(file, token, "content")};
    added.id = id_of(file, member(token, "id"), added.content);
    added.normalized = is_set(token, "normalized");
    added.single_word = is_set(token, "single_word");
    added.left_strip = is_set(token, "lstrip");
    added.right_strip = is_set(token, "rstrip");
    added.special = is_set(token, "special");
    description.added.push_back(std::move(added));
  }
}

BpeDescription tokenizer_json(const std::filesystem::path& file, const json& document) {
  BpeDescription description;
  description.file = file;
  if (const json& version = member(document, "version");
      !version.is_null() && version != "1.0") {  // as the tokenizers library does
    unsupported(file, format_message("version {} of the format", json_text(version)));
  }
  read_model(member(document, "model"), description);
  read_added_tokens(member(document, "added_tokens"), description);
  read_pipeline(document, description);
  return description;
}

std::vector<std::pair<std::string, std::string>> merges_in(const FileBytes& file) {
  std::vector<std::pair<std::string, std::string>> merges;
  std::string_view rest = file.bytes;
  for (std::size_t number = 1; !rest.empty(); ++number) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    if (!line.starts_with("#version")) {
      merges.push_back(merge_of(file.path, line, number));
    }
  }
  return merges;
}

/// CLIP's and GPT's own marks where a word ends, and WordPiece's where one goes on, in files of the
/// same names: tokens of byte-level BPE mark where a word begins.
void refuse_other_kind(const BpeDescription& description) {
  for (const std::string_view mark : {"</w>", "@@"}) {
    const auto marked = std::ranges::count_if(
        description.vocab, [&](const auto& entry) { return entry.first.ends_with(mark); });
    if (marked > std::ssize(description.vocab) / 8) {
      unsupported(
          description.file,
          format_message("\"{}\" at the end of {} tokens, where files of byte-level BPE have none",
                         mark, marked));
    }
  }
}

/// The pair of files that byte-level BPE is published as.
BpeDescription vocab_and_merges(const TokenizerFiles& files, const json& vocab) {
  BpeDescription description;
  description.file = files.main.path;
  read_vocab(vocab, description);
  description.merges = merges_in(*files.merges);
  refuse_other_kind(description);
  for (const auto& [token, id] : description.vocab) {
    if (token == "<|endoftext|>") {
      description.added.push_back({.content = token, .id = id, .special = true});
    }
  }
  description.is_byte_level = true;
  description.splitting.push_back({.pattern = {contractions_and_letters, true}});
  description.decoding.emplace({DecodeStep{.kind = DecodeStep::Kind::byte_level}});
  return description;
}

}  // namespace

void damaged(const std::filesystem::path& file, const std::string& problem) {
  throw UserError(ExitCode::data_corrupt,
                  format_message("{}: {}; the tokenizer file is damaged, fetch or make it again",
                                 file.string(), problem));
}

void unsupported(const std::filesystem::path& file, const std::string& component) {
  throw UserError(ExitCode::config,
                  format_message("{}: uses {} (not supported; docs/data.md lists what is); use "
                                 "another tokenizer",
                                 file.string(), component));
}

const json& member(const json& object, const char* key) {
  static const json null;
  const auto found = object.find(key);
  return found == object.end() ? null : *found;
}

bool is_set(const json& object, const char* key) {
  const json& value = member(object, key);
  return value.is_boolean() && value.get<bool>();
}

std::string text_of(const std::filesystem::path& file, const json& object, const char* key) {
  const json& value = member(object, key);
  if (!value.is_string()) {
    damaged(file, format_message("'{}' is missing or not a text", key));
  }
  return value.get<std::string>();
}

const char* const contractions_and_letters =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

BpeDescription read_bpe(const TokenizerFiles& files) {
  FOURFOLD_EXPECT(files.kind == TokenizerKind::tokenizer_json ||
                  files.kind == TokenizerKind::vocab_and_merges);
  const json document = parse_json<json>(files.main.bytes, files.main.path.string());
  if (!document.is_object() || document.empty()) {
    damaged(files.main.path, "is not a JSON object, or an empty one");
  }
  return files.kind == TokenizerKind::vocab_and_merges ? vocab_and_merges(files, document)
                                                       : tokenizer_json(files.main.path, document);
}

}  // namespace fourfold::data::detail
