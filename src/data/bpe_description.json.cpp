// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "bpe_description.hpp"

#include "json_file.json.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/io/mapped_file.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string_view>

namespace fourfold::data::detail {
namespace {

using nlohmann::json;

constexpr std::int64_t largest_id = (std::int64_t{1} << 24) - 1;

[[noreturn]] void corrupt(const std::filesystem::path& file, const std::string& problem) {
  throw UserError(ExitCode::data_corrupt,
                  fmt::format("{}: {}; the tokenizer file is damaged, fetch or make it again",
                              file.string(), problem));
}

[[noreturn]] void unsupported(const std::filesystem::path& file, const std::string& component) {
  throw UserError(
      ExitCode::config,
      fmt::format("{}: uses {} (only byte-level BPE as in GPT-2 and Llama 3 is supported: "
                  "pre-tokenizers ByteLevel, Split and Sequence, no normalizer); use "
                  "another tokenizer",
                  file.string(), component));
}

/// The member of an object, or null where it is missing.
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
    corrupt(file, fmt::format("'{}' is missing or not a text", key));
  }
  return value.get<std::string>();
}

std::int32_t id_of(const std::filesystem::path& file, const json& value, const std::string& token) {
  if (!value.is_number_integer() || value.get<std::int64_t>() < 0 ||
      value.get<std::int64_t>() > largest_id) {
    corrupt(file, fmt::format("token '{}' has the number {} instead of one from 0 to {}", token,
                              json_text(value), largest_id));
  }
  return value.get<std::int32_t>();
}

void read_vocab(const json& vocab, BpeDescription& description) {
  if (!vocab.is_object() || vocab.empty()) {
    corrupt(description.file, "the vocabulary is missing, empty or not an object");
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
    corrupt(file, fmt::format("merge {} is '{}' instead of two tokens with a space between", number,
                              text));
  }
  return {std::string(text.substr(0, space)), std::string(text.substr(space + 1))};
}

void read_merges(const json& merges, BpeDescription& description) {
  if (!merges.is_array()) {
    corrupt(description.file, "the merges are missing or not a list");
  }
  for (const json& merge : merges) {
    const std::size_t number = description.merges.size();
    if (merge.is_string()) {
      description.merges.push_back(merge_of(description.file, merge.get<std::string>(), number));
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
               merge[1].is_string()) {
      description.merges.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
    } else {
      corrupt(description.file,
              fmt::format("merge {} is {} instead of two tokens", number, json_text(merge)));
    }
  }
}

void read_model(const json& model, BpeDescription& description) {
  const std::filesystem::path& file = description.file;
  if (!model.is_object()) {
    corrupt(file, "'model' is missing");
  }
  const json& type = member(model, "type");
  if (type.is_string() && type != "BPE") {
    unsupported(file, fmt::format("a model of type {}", type.get<std::string>()));
  }
  if (is_set(model, "byte_fallback")) {
    unsupported(file, "byte_fallback");
  }
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const json& affix = member(model, key);
    if (affix.is_string() && !affix.get<std::string>().empty()) {
      unsupported(file, fmt::format("{} '{}'", key, affix.get<std::string>()));
    }
  }
  if (const json& dropout = member(model, "dropout"); dropout.is_number() && dropout != 0) {
    unsupported(file, "dropout of merges");
  }
  description.ignore_merges = is_set(model, "ignore_merges");
  read_vocab(member(model, "vocab"), description);
  read_merges(member(model, "merges"), description);
}

void read_added_tokens(const json& tokens, BpeDescription& description) {
  if (tokens.is_null()) {
    return;
  }
  if (!tokens.is_array()) {
    corrupt(description.file, "'added_tokens' is not a list");
  }
  for (const json& token : tokens) {
    if (!token.is_object()) {
      corrupt(description.file, "an entry of 'added_tokens' is not an object");
    }
    const std::string content = text_of(description.file, token, "content");
    for (const char* key : {"single_word", "lstrip", "rstrip"}) {
      if (is_set(token, key)) {
        unsupported(description.file, fmt::format("the added token '{}' with {}", content, key));
      }
    }
    if (!content.empty()) {
      description.added.push_back({content, id_of(description.file, member(token, "id"), content),
                                   !is_set(token, "normalized")});
    }
  }
}

SplitStep split_step(const std::filesystem::path& file, const json& component) {
  SplitStep step;
  const json& pattern = member(component, "pattern");
  if (pattern.is_object() && member(pattern, "Regex").is_string()) {
    step.kind = SplitStep::Kind::expression;
    step.pattern = text_of(file, pattern, "Regex");
  } else if (pattern.is_object() && member(pattern, "String").is_string()) {
    step.kind = SplitStep::Kind::literal;
    step.pattern = text_of(file, pattern, "String");
  } else {
    corrupt(file, "a Split pre-tokenizer has neither a Regex nor a String as its pattern");
  }
  const std::string behavior = text_of(file, component, "behavior");
  const bool inverted = is_set(component, "invert");
  if (behavior == "Isolated") {
    step.keep = SplitStep::Keep::all;
  } else if (behavior == "Removed") {
    step.keep = inverted ? SplitStep::Keep::matches : SplitStep::Keep::between;
  } else {
    unsupported(file, fmt::format("a Split pre-tokenizer with behavior {}", behavior));
  }
  return step;
}

/// Adds the steps of one pre-tokenizer. Returns whether it was the ByteLevel that has to be the
/// last.
bool read_pre_tokenizer(const json& component, BpeDescription& description, int depth) {
  const std::filesystem::path& file = description.file;
  if (!component.is_object() || depth > 8) {
    unsupported(file,
                component.is_null() ? "no pre-tokenizer" : "a pre-tokenizer that is not an object");
  }
  const std::string type = text_of(file, component, "type");
  if (type == "Split") {
    description.steps.push_back(split_step(file, component));
    return false;
  }
  if (type == "ByteLevel") {
    if (is_set(component, "add_prefix_space")) {
      description.steps.push_back({SplitStep::Kind::prefix_space, SplitStep::Keep::all, ""});
    }
    const json& use_regex = member(component, "use_regex");  // older files lack it and mean true
    if (!use_regex.is_boolean() || use_regex.get<bool>()) {
      description.steps.push_back(
          {SplitStep::Kind::expression, SplitStep::Keep::all, gpt2_expression});
    }
    return true;
  }
  if (type != "Sequence") {
    unsupported(file, fmt::format("the pre-tokenizer {}", type));
  }
  bool bytes_reached = false;
  for (const json& part : member(component, "pretokenizers")) {
    if (bytes_reached) {
      unsupported(file, "a pre-tokenizer after ByteLevel");
    }
    bytes_reached = read_pre_tokenizer(part, description, depth + 1);
  }
  return bytes_reached;
}

}  // namespace

const char* const gpt2_expression =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

BpeDescription read_tokenizer_json(const std::filesystem::path& file) {
  const json document = parse_json_file(file);
  BpeDescription description;
  description.file = file;
  if (!document.is_object()) {
    corrupt(file, "is not a JSON object");
  }
  if (const json& normalizer = member(document, "normalizer"); !normalizer.is_null()) {
    unsupported(file, fmt::format("the normalizer {}", json_text(member(normalizer, "type"))));
  }
  read_model(member(document, "model"), description);
  read_added_tokens(member(document, "added_tokens"), description);
  if (!read_pre_tokenizer(member(document, "pre_tokenizer"), description, 0)) {
    unsupported(file, "pre-tokenizers without a ByteLevel at the end");
  }
  return description;
}

BpeDescription read_vocab_and_merges(const std::filesystem::path& vocab_json,
                                     const std::filesystem::path& merges_txt) {
  BpeDescription description;
  description.file = vocab_json;
  read_vocab(parse_json_file(vocab_json), description);
  const io::MappedFile merges(merges_txt);
  std::string_view rest(reinterpret_cast<const char*>(merges.bytes().data()),
                        merges.bytes().size());
  for (std::size_t number = 1; !rest.empty(); ++number) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    if (!line.starts_with("#version")) {
      description.merges.push_back(merge_of(merges_txt, line, number));
    }
  }
  for (const auto& [token, id] : description.vocab) {
    if (token == "<|endoftext|>") {
      description.added.push_back({token, id, true});
    }
  }
  description.steps.push_back({SplitStep::Kind::expression, SplitStep::Keep::all, gpt2_expression});
  return description;
}

}  // namespace fourfold::data::detail
