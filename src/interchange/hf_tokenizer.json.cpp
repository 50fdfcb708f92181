// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/base/json_from_python.hpp>
#include <fourfold/base/json_text.hpp>
#include <fourfold/data/tokenizer.hpp>
#include <fourfold/interchange/hf_tokenizer.hpp>
#include <fourfold/io/text_file.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>

namespace fourfold::interchange {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::uint64_t longest_file = std::uint64_t{1} << 30;
constexpr const char* config_name = "tokenizer_config.json";
constexpr const char* end_of_text_name = "<|endoftext|>";
/// What belongs to a tokenizer of Hugging Face beside the file with its tokens.
constexpr std::array beside_names{config_name, "special_tokens_map.json", "added_tokens.json",
                                  "chat_template.jinja"};

/// The character that ByteLevel writes for a byte, as UTF-8: printable ones stand for themselves,
/// the others for those from U+0100 on, in order.
std::string byte_level_character(int byte) {
  const auto is_printable = [](int b) {
    return (0x21 <= b && b <= 0x7E) || (0xA1 <= b && b <= 0xAC) || 0xAE <= b;
  };
  int code = byte;
  if (!is_printable(byte)) {
    code = 0x100;
    for (int below = 0; below < byte; ++below) {
      code += is_printable(below) ? 0 : 1;
    }
  }
  return code < 0x80 ? std::string(1, static_cast<char>(code))
                     : std::string{static_cast<char>(0xC0 | (code >> 6)),
                                   static_cast<char>(0x80 | (code & 0x3F))};
}

/// A BPE without merges over the 256 bytes, and the end of text.
std::string byte_tokenizer_json(std::int32_t end_of_text) {
  ordered_json vocab = ordered_json::object();
  for (int byte = 0; byte < 256; ++byte) {
    vocab[byte_level_character(byte)] = byte;
  }
  const ordered_json byte_level{{"type", "ByteLevel"},
                                {"add_prefix_space", false},
                                {"trim_offsets", true},
                                {"use_regex", false}};
  const ordered_json added{
      {"id", end_of_text}, {"content", end_of_text_name}, {"single_word", false}, {"lstrip", false},
      {"rstrip", false},   {"normalized", false},         {"special", true}};
  const ordered_json document{{"version", "1.0"},
                              {"truncation", nullptr},
                              {"padding", nullptr},
                              {"added_tokens", ordered_json::array({added})},
                              {"normalizer", nullptr},
                              {"pre_tokenizer", byte_level},
                              {"post_processor", nullptr},
                              {"decoder", byte_level},
                              {"model",
                               {{"type", "BPE"},
                                {"dropout", nullptr},
                                {"unk_token", nullptr},
                                {"continuing_subword_prefix", nullptr},
                                {"end_of_word_suffix", nullptr},
                                {"fuse_unk", false},
                                {"byte_fallback", false},
                                {"vocab", vocab},
                                {"merges", ordered_json::array()}}}};
  return json_text(document, 2) + "\n";
}

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

enum class Kind : std::uint8_t { tokenizer_json, vocabulary, sentencepiece };

/// What a file is, by its content.
Kind kind_of(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos || text[begin] != '{') {
    return Kind::sentencepiece;
  }
  const auto document = json_if_any<json>(text);
  return document.is_object() && document.contains("model") && document["model"].is_object()
             ? Kind::tokenizer_json
             : Kind::vocabulary;
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

/// Takes the special tokens that a tokenizer_config.json names.
void take_special(const std::string& text, const std::string& file, data::Tokenizer& tokenizer,
                  SpecialTokens& special) {
  const auto config = parse_json<json>(json_from_python(text), file);
  if (!config.is_object()) {
    throw UserError(ExitCode::data_corrupt,
                    fmt::format("{}: is JSON, but no object; fetch or make the file again", file));
  }
  if (const auto eos = id_of(tokenizer, token_in(config, "eos_token"));
      eos && std::ranges::count(special.eos, *eos) == 0) {
    special.eos.insert(special.eos.begin(), *eos);
  }
  if (const auto bos = id_of(tokenizer, token_in(config, "bos_token"))) {
    special.bos = bos;
  }
}

void add_config(const std::filesystem::path& folder, const char* tokenizer_class,
                const std::string& end_of_text, std::int64_t context, data::Tokenizer& tokenizer,
                HfTokenizer& result) {
  std::error_code ignored;
  bool is_there = false;
  for (const char* const name : beside_names) {
    const std::filesystem::path file = folder / name;
    if (!std::filesystem::exists(file, ignored)) {
      continue;
    }
    result.files.push_back({name, io::text_of_file(file, longest_file)});
    if (name == config_name) {
      is_there = true;
      take_special(result.files.back().contents, file.string(), tokenizer, result.special);
    }
  }
  if (!is_there) {
    result.files.push_back({config_name, made_config(tokenizer_class, end_of_text, context)});
  }
}

}  // namespace

HfTokenizer hf_tokenizer(const std::string& named, std::int64_t context) {
  const auto tokenizer = data::open_tokenizer(named);
  const std::optional<std::int32_t> end = tokenizer->end_of_text();
  HfTokenizer result;
  result.vocab_size = tokenizer->vocab_size();
  if (end) {
    result.special = {.bos = end, .eos = {*end}};
  }
  if (named == "byte") {
    result.files = {
        {"tokenizer.json", byte_tokenizer_json(end.value())},
        {config_name, made_config("PreTrainedTokenizerFast", end_of_text_name, context)}};
    return result;
  }
  std::error_code ignored;
  const std::filesystem::path file = std::filesystem::is_directory(named, ignored)
                                         ? data::tokenizer_in(named).value_or(named)
                                         : std::filesystem::path(named);
  const std::filesystem::path folder = file.parent_path();
  std::string text = io::text_of_file(file, longest_file);
  const std::string end_text = end ? tokenizer->decode(std::span(&*end, 1)) : std::string();
  const Kind kind = kind_of(text);
  if (kind == Kind::sentencepiece) {
    result.files.push_back({"tokenizer.model", std::move(text)});
    result.notes.emplace_back(
        "tokenizer.model is for transformers' LlamaTokenizer, which does not normalize texts as "
        "the "
        "model says: runs of blanks and rare characters may become other tokens there");
  } else if (kind == Kind::tokenizer_json) {
    result.files.push_back({"tokenizer.json", std::move(text)});
  } else {
    result.files.push_back({"vocab.json", std::move(text)});
    result.files.push_back({"merges.txt", io::text_of_file(folder / "merges.txt", longest_file)});
  }
  const char* const tokenizer_class = kind == Kind::sentencepiece ? "LlamaTokenizer"
                                      : kind == Kind::vocabulary  ? "GPT2Tokenizer"
                                                                  : "PreTrainedTokenizerFast";
  add_config(folder, tokenizer_class, kind == Kind::sentencepiece ? "" : end_text, context,
             *tokenizer, result);
  return result;
}

}  // namespace fourfold::interchange
