// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/base/json_text.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/data/tokenizer.hpp>
#include <fourfold/io/mapped_file.hpp>
#include <fourfold/model_conversion/hf_tokenizer.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>

namespace fourfold::model_conversion {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::uint64_t longest_file = std::uint64_t{1} << 30;
constexpr const char* config_name = "tokenizer_config.json";
constexpr const char* end_of_text_name = "<|endoftext|>";

std::string made_config(const char* tokenizer_class, const std::string& end_of_text,
                        std::int64_t context) {
  ordered_json config{{"tokenizer_class", tokenizer_class}};
  if (!end_of_text.empty()) {
    config["bos_token"] = end_of_text;
    config["eos_token"] = end_of_text;
  }
  config["model_max_length"] = context;
  config["clean_up_tokenization_spaces"] = false;
  return json_text(config, 2) + "\n";
}

/// "bos_token": a text, or an object that holds one; empty: none is named.
std::string token_in(const json& config, const char* key) {
  const auto found = config.find(key);
  if (found == config.end()) {
    return {};
  }
  const json& value =
      found->is_object() && found->contains("content") ? (*found)["content"] : *found;
  return value.is_string() ? value.get<std::string>() : std::string();
}

/// The one token of a text; nothing: it is none.
std::optional<std::int32_t> id_of(data::Tokenizer& tokenizer, const std::string& text) {
  std::vector<std::int32_t> ids;
  if (!text.empty()) {
    tokenizer.encode(text, ids);
  }
  return ids.size() == 1 ? std::optional(ids.front()) : std::nullopt;
}

/// All of them but the template are JSON objects, and who loads the model reads them as such.
json object_in(const std::string& text, const std::string& file) {
  json object = parse_json<json>(json_from_python(text), file);
  if (!object.is_object()) {
    throw UserError(
        ExitCode::data_corrupt,
        format_message("{}: is JSON, but no object; fetch or make the file again", file));
  }
  return object;
}

/// Takes the special tokens that a tokenizer_config.json names.
void take_special(const json& config, data::Tokenizer& tokenizer, SpecialTokens& special) {
  if (const auto eos = id_of(tokenizer, token_in(config, "eos_token"));
      eos && std::ranges::count(special.eos, *eos) == 0) {
    special.eos.insert(special.eos.begin(), *eos);
  }
  if (const auto bos = id_of(tokenizer, token_in(config, "bos_token"))) {
    special.bos = bos;
  }
}

constexpr const char* generic_class = "PreTrainedTokenizerFast";

/// Where the text of a JSON object has the value of `key`, a text of plain characters, in quotes.
/// Nothing when that is not to be seen at a glance.
std::optional<std::size_t> place_of(const std::string& key, const std::string& value,
                                    const std::string& text) {
  const std::string quoted = '"' + key + '"';
  const std::size_t found = text.find(quoted);
  if (found == std::string::npos || text.find(quoted, found + 1) != std::string::npos) {
    return std::nullopt;
  }
  constexpr const char* blanks = " \t\r\n";
  const std::size_t colon = text.find_first_not_of(blanks, found + quoted.size());
  const std::size_t place = text.find_first_not_of(blanks, colon + 1);
  return place != std::string::npos && text.compare(place, value.size() + 2, '"' + value + '"') == 0
             ? std::optional(place + 1)
             : std::nullopt;
}

/// A class of its own may read a tokenizer.json in its own way, into other tokens than it says; the
/// generic one reads it as it is. The rest of the text stays, byte by byte.
void make_generic(const json& config, std::string& text, std::vector<std::string>& notes) {
  const auto found = config.find("tokenizer_class");
  if (found == config.end() || !found->is_string() || *found == generic_class) {
    return;
  }
  const auto its_class = found->get<std::string>();
  if (const auto place = place_of("tokenizer_class", its_class, text)) {
    text.replace(*place, its_class.size(), generic_class);
    notes.push_back(format_message(
        "tokenizer_class is {} in the exported tokenizer_config.json ({} in yours): it reads "
        "tokenizer.json as it is, where a class of its own may make other tokens of some texts",
        generic_class, its_class));
  } else {
    notes.push_back(format_message(
        "tokenizer_config.json names the class {}, which may make other tokens of some texts than "
        "tokenizer.json says; {} reads that as it is",
        its_class, generic_class));
  }
}

void add_config(const std::filesystem::path& folder, const char* tokenizer_class,
                const std::string& end_of_text, std::int64_t context, data::Tokenizer& tokenizer,
                HfTokenizer& result) {
  std::error_code ignored;
  bool is_there = false;
  for (const char* const name : data::tokenizer_side_files) {
    const std::filesystem::path file = folder / name;
    const auto status = std::filesystem::symlink_status(file, ignored);
    if (!std::filesystem::exists(status)) {
      continue;
    }
    result.files.push_back({name, io::text_of_file(file, longest_file)});  // also through a link
    if (file.extension() != ".json") {
      continue;
    }
    const json object = object_in(result.files.back().bytes, file.string());
    if (name == config_name) {
      is_there = true;
      take_special(object, tokenizer, result.special);
      if (tokenizer.files().kind == data::TokenizerKind::tokenizer_json) {
        make_generic(object, result.files.back().bytes, result.notes);
      }
    }
  }
  if (!is_there) {
    result.files.push_back({config_name, made_config(tokenizer_class, end_of_text, context)});
  }
}

}  // namespace

HfTokenizer hf_tokenizer(data::Tokenizer& tokenizer, std::int64_t context) {
  const data::TokenizerFiles& files = tokenizer.files();
  const std::optional<std::int32_t> end = tokenizer.end_of_text();
  const std::string end_text = end ? tokenizer.decode(std::span(&*end, 1)) : std::string();
  const std::filesystem::path folder = files.main.path.parent_path();
  HfTokenizer result;
  result.vocab_size = tokenizer.vocab_size();
  if (end) {
    result.special = {.bos = end, .eos = {*end}};
  }
  switch (files.kind) {
    case data::TokenizerKind::bytes:
      result.files = {{"tokenizer.json", data::byte_tokenizer_json()},
                      {config_name, made_config(generic_class, end_of_text_name, context)}};
      break;
    case data::TokenizerKind::tokenizer_json:
      result.files = {{"tokenizer.json", files.main.bytes}};
      add_config(folder, generic_class, end_text, context, tokenizer, result);
      break;
    case data::TokenizerKind::vocab_and_merges:
      result.files = {{"vocab.json", files.main.bytes}, {"merges.txt", files.merges->bytes}};
      add_config(folder, "GPT2Tokenizer", end_text, context, tokenizer, result);
      break;
    case data::TokenizerKind::sentencepiece:
      if (!is_sentencepiece_bpe(files.main.bytes)) {
        result.files = {{"sentencepiece.model", files.main.bytes}};
        result.notes.emplace_back(
            "the SentencePiece model is no BPE (unigram, word or char), which transformers' "
            "LlamaTokenizer would read as one, into other tokens: it is written as "
            "sentencepiece.model, for the sentencepiece library, and AutoTokenizer finds none");
        break;
      }
      result.files = {{"tokenizer.model", files.main.bytes}};
      result.notes.emplace_back(
          "tokenizer.model is for transformers' LlamaTokenizer, which does not normalize texts as "
          "the model says: runs of blanks and rare characters may become other tokens there");
      add_config(folder, "LlamaTokenizer", "", context, tokenizer, result);
      break;
  }
  if (result.special.eos.empty()) {
    result.notes.emplace_back(
        "no token of it ends a text: eos_token_id is left open, and generate stops only at its "
        "max_new_tokens");
  }
  return result;
}

}  // namespace fourfold::model_conversion
