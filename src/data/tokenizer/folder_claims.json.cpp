// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/folder_claims.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/base/json_text.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/io/mapped_file.hpp>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <set>
#include <string_view>
#include <system_error>
#include <vector>

namespace fourfold::data::detail {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view end_of_text_token = "<|endoftext|>";
constexpr std::uint64_t longest_claim_bytes = std::uint64_t{64} << 20;

/// The object in a file beside the tokenizer's, or where a link of that name leads; an empty one
/// where there is none that can be read.
json object_in(const fs::path& file) {
  std::error_code ignored;
  if (!fs::is_regular_file(file, ignored)) {
    return json::object();
  }
  try {
    const json value = json_if_any<json>(io::text_of_file(file, longest_claim_bytes));
    return value.is_object() ? value : json::object();
  } catch (const UserError&) {
    return json::object();
  }
}

[[noreturn]] void refuse(const TokenizerFiles& files, const fs::path& by,
                         const std::string& claim) {
  throw UserError(
      ExitCode::config,
      format_message("{}: is not all of its tokenizer ({} says {}); give its tokenizer.json, which "
                     "save_pretrained of transformers' fast tokenizers writes, or copy the file to "
                     "a folder of its own to have it read as it is",
                     files.main.path.string(), by.string(), claim));
}

/// Whether a class makes the tokens of these files that are made here. Others number the pieces of
/// a SentencePiece model anew, or begin a text otherwise.
bool is_read_so(const TokenizerFiles& files, std::string_view name) {
  if (name.ends_with("Fast")) {
    name.remove_suffix(std::string_view("Fast").size());
  }
  return files.kind == TokenizerKind::vocab_and_merges
             ? name == "GPT2Tokenizer"
             : name == "LlamaTokenizer" || name == "CodeLlamaTokenizer" || name == "GemmaTokenizer";
}

/// Whose vocab.json transformers reads as byte-level BPE where no class is named.
bool is_model_of_byte_level_bpe(std::string_view type) {
  constexpr std::array<std::string_view, 5> types{"gpt2", "gpt_neo", "gptj", "gpt_bigcode", "opt"};
  return std::ranges::count(types, type) > 0;
}

/// The text of a token, which is a text itself or an object that has it.
std::optional<std::string> text_of_token(const json& token) {
  const json text = token.is_object() ? token.value("content", json()) : token;
  return text.is_string() ? std::optional(text.get_ref<const std::string&>()) : std::nullopt;
}

fs::path beside(const TokenizerFiles& files, const char* name) {
  return files.main.path.parent_path() / name;
}
fs::path config_file_of(const TokenizerFiles& files) {
  return beside(files, "tokenizer_config.json");
}

/// visit(file that says so, text of a token, its number where that is said)
using Visit = std::function<void(const fs::path&, const std::string&, std::optional<std::int64_t>)>;

void visit_special_tokens(const fs::path& by, const json& says, const Visit& visit) {
  for (const char* key : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token",
                          "cls_token", "mask_token"}) {
    if (const auto text = text_of_token(says.value(key, json()))) {
      visit(by, *text, std::nullopt);
    }
  }
  for (const char* key : {"additional_special_tokens", "extra_special_tokens"}) {
    const json tokens = says.value(key, json());
    for (const auto& [index, token] : tokens.items()) {
      if (const auto text = text_of_token(token)) {
        visit(by, *text, std::nullopt);
      }
    }
  }
}

/// The tokens that the other files of a folder give its tokenizer.
/// @param config  tokenizer_config.json
void for_each_token(const TokenizerFiles& files, const json& config, const Visit& visit) {
  const fs::path config_file = config_file_of(files);
  const json decoder = config.value("added_tokens_decoder", json::object());
  for (const auto& [key, token] : decoder.items()) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), number);
    const auto text = text_of_token(token);
    if (error == std::errc{} && end == key.data() + key.size() && text) {
      visit(config_file, *text, number);
    }
  }
  const fs::path added_file = beside(files, "added_tokens.json");
  const json added = object_in(added_file);
  for (const auto& [text, number] : added.items()) {
    if (number.is_number_integer()) {
      visit(added_file, text, number.get<std::int64_t>());
    }
  }
  visit_special_tokens(config_file, config, visit);
  const fs::path map_file = beside(files, "special_tokens_map.json");
  visit_special_tokens(map_file, object_in(map_file), visit);
}

void refuse_class(const TokenizerFiles& files, const fs::path& file, const json& name) {
  if (name.is_string() && !is_read_so(files, name.get_ref<const std::string&>())) {
    refuse(files, file,
           format_message("tokenizer_class \"{}\", which makes other tokens of it",
                          name.get_ref<const std::string&>()));
  }
}

/// By the model's own file where that of the tokenizer names no class.
void refuse_other_class(const TokenizerFiles& files, const json& config) {
  const json name = config.value("tokenizer_class", json());
  refuse_class(files, config_file_of(files), name);
  if (name.is_string()) {
    return;
  }
  const fs::path model_file = beside(files, "config.json");
  const json model = object_in(model_file);
  const json its_name = model.value("tokenizer_class", json());
  refuse_class(files, model_file, its_name);
  const json type = model.value("model_type", json());
  if (files.kind == TokenizerKind::vocab_and_merges && !its_name.is_string() && type.is_string() &&
      !is_model_of_byte_level_bpe(type.get_ref<const std::string&>())) {
    refuse(files, model_file,
           format_message("model_type \"{}\", whose tokenizer makes other tokens of it",
                          type.get_ref<const std::string&>()));
  }
}

void refuse_other_token(const TokenizerFiles& files, const fs::path& file, const TokenOf& token_of,
                        const std::string& text, std::optional<std::int64_t> number) {
  const auto known = token_of(text);
  if (!known || (number && *known != *number)) {
    refuse(files, file,
           format_message("that \"{}\" is {}, {}", text,
                          number ? format_message("token {}", *number) : std::string("a token"),
                          known ? format_message("which is {} in it", *known)
                                : std::string("which is none that it would make of a text")));
  }
}

void refuse_other_end(const TokenizerFiles& files, const json& config, const TokenOf& token_of,
                      std::optional<std::int64_t> end_of_text) {
  const auto text = text_of_token(config.value("eos_token", json()));
  if (text && token_of(*text) != end_of_text) {
    refuse(files, config_file_of(files),
           format_message("eos_token \"{}\", which is not the end of text in it", *text));
  }
}

}  // namespace

void refuse_other_claims_beside(const TokenizerFiles& files, const TokenOf& token_of,
                                std::optional<std::int64_t> end_of_text, bool adds_prefix_space) {
  const json config = object_in(config_file_of(files));
  refuse_other_class(files, config);
  const json name = config.value("tokenizer_class", json());
  if (name.is_string() && name.get_ref<const std::string&>().starts_with("Gemma") &&
      adds_prefix_space) {
    refuse(files, config_file_of(files),
           "a class of Gemma, which puts no blank before a first word");
  }
  const json prefix = config.value("add_prefix_space", json());
  if (prefix.is_boolean() && prefix.get<bool>() != adds_prefix_space) {
    refuse(files, config_file_of(files),
           format_message("add_prefix_space {}, which makes other tokens of the first word",
                          prefix.get<bool>()));
  }
  for_each_token(
      files, config,
      [&](const fs::path& by, const std::string& text, std::optional<std::int64_t> number) {
        refuse_other_token(files, by, token_of, text, number);
      });
  refuse_other_end(files, config, token_of, end_of_text);
}

std::string told_of_tokens_beside(const TokenizerFiles& files,
                                  const std::function<bool(const std::string&)>& is_token) {
  constexpr std::size_t shown = 3;
  std::set<std::string> missing;
  fs::path first_by;
  for_each_token(
      files, object_in(config_file_of(files)),
      [&](const fs::path& by, const std::string& text, std::optional<std::int64_t> /*number*/) {
        if (!is_token(text)) {
          first_by = missing.empty() ? by : first_by;
          missing.insert(text);
        }
      });
  if (missing.empty()) {
    return "";
  }
  std::vector<std::string> names(missing.begin(), missing.end());
  names.resize(std::min(names.size(), shown));
  return format_message(
      "{}: {} texts that {} calls tokens are none in it ({}{}): transformers adds them when it "
      "opens the folder, and makes other tokens of texts with them; here the file is read as it is "
      "(save_pretrained writes one that has them)",
      files.main.path.string(), missing.size(), first_by.string(), fmt::join(names, ", "),
      missing.size() > shown ? ", ..." : "");
}

void refuse_other_claims_beside(const TokenizerFiles& vocabulary) {
  std::optional<std::int64_t> end;  // looked up where somebody asks
  const TokenOf token_of = [&](const std::string& text) -> std::optional<std::int64_t> {
    if (text != end_of_text_token) {
      return std::nullopt;  // an entry of the vocabulary alone is not cut out of a text as a whole
    }
    if (!end) {
      const json entries = json_if_any<json>(vocabulary.main.bytes);
      const auto found = entries.find(text);
      end = found != entries.end() && found->is_number_integer() ? found->get<std::int64_t>() : -1;
    }
    return *end < 0 ? std::nullopt : end;
  };
  refuse_other_claims_beside(vocabulary, token_of, token_of(std::string(end_of_text_token)), false);
}

}  // namespace fourfold::data::detail
