// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/split_expression.hpp"
#include "tokenizer/tokenizer_fields.json.hpp"

#include <fourfold/base/json_text.hpp>
#include <fourfold/base/message.hpp>

#include <functional>
#include <iterator>
#include <string_view>

namespace fourfold::data::detail {
namespace {

using nlohmann::json;

constexpr int most_nested = 8;

Pattern pattern_of(const std::filesystem::path& file, const json& component, const char* user) {
  const json& pattern = member(component, "pattern");
  for (const char* kind : {"Regex", "String"}) {
    if (pattern.is_object() && member(pattern, kind).is_string()) {
      return {text_of(file, pattern, kind), kind == std::string_view("Regex")};
    }
  }
  damaged(file, format_message("{} has neither a Regex nor a String as its pattern", user));
}

/// A text that must be one character.
std::string character_of(const std::filesystem::path& file, const json& component,
                         const char* key) {
  std::string text = text_of(file, component, key);
  std::string_view rest = text;
  if (!rest.empty()) {
    take_character(rest);
  }
  if (text.empty() || !rest.empty()) {
    damaged(file, format_message("'{}' is '{}' instead of one character", key, text));
  }
  return text;
}

/// Calls `read` for a component, or in order for the parts of a Sequence, however nested.
void for_each_part(const std::filesystem::path& file, const json& component, const char* list_key,
                   const char* kind, const std::function<void(const json&, std::string)>& read,
                   int depth = 0) {
  if (component.is_null()) {
    return;
  }
  if (!component.is_object()) {
    damaged(file, format_message("a {} is not an object", kind));
  }
  std::string type = text_of(file, component, "type");
  if (type != "Sequence") {
    read(component, std::move(type));
    return;
  }
  const json& parts = member(component, list_key);
  if (!parts.is_array()) {
    damaged(file, format_message("'{}' of a Sequence is missing or not a list", list_key));
  }
  if (depth == most_nested) {
    unsupported(file, format_message("a {} nested {} Sequences deep", kind, depth + 1));
  }
  for (const json& part : parts) {
    for_each_part(file, part, list_key, kind, read, depth + 1);
  }
}

void read_normalizer(const json& component, const std::string& type, BpeDescription& description) {
  const std::filesystem::path& file = description.file;
  NormalizeStep step;
  if (type == "NFC" || type == "NFD" || type == "NFKC" || type == "NFKD") {
    step.form = type == "NFC"    ? NormalForm::nfc
                : type == "NFD"  ? NormalForm::nfd
                : type == "NFKC" ? NormalForm::nfkc
                                 : NormalForm::nfkd;
  } else if (type == "Replace") {
    step.kind = NormalizeStep::Kind::replace;
    step.pattern = pattern_of(file, component, "a Replace normalizer");
    step.content = text_of(file, component, "content");
  } else if (type == "Prepend") {
    step.kind = NormalizeStep::Kind::prepend;
    step.content = text_of(file, component, "prepend");
    if (step.content.empty()) {  // the library doubles characters, or ends, in the next step
      unsupported(file, "a Prepend normalizer without a text");
    }
  } else if (type == "Strip") {
    step.kind = NormalizeStep::Kind::strip;
    step.left = is_set(component, "strip_left");
    step.right = is_set(component, "strip_right");
  } else if (type == "Lowercase") {
    step.kind = NormalizeStep::Kind::lower_case;
  } else {
    unsupported(file, format_message("the normalizer {}", type));
  }
  description.normalization.push_back(step);
}

SplitStep::Behavior behavior_of(const std::filesystem::path& file, const json& component) {
  const std::string name = text_of(file, component, "behavior");
  const std::pair<const char*, SplitStep::Behavior> known[] = {
      {"Isolated", SplitStep::Behavior::isolated},
      {"Removed", SplitStep::Behavior::removed},
      {"MergedWithPrevious", SplitStep::Behavior::merged_with_previous},
      {"MergedWithNext", SplitStep::Behavior::merged_with_next},
      {"Contiguous", SplitStep::Behavior::contiguous}};
  for (const auto& [spelled, behavior] : known) {
    if (name == spelled) {
      return behavior;
    }
  }
  damaged(file, format_message("a Split pre-tokenizer has the behavior '{}'", name));
}

SplitStep expression_step(std::string expression,
                          SplitStep::Behavior behavior = SplitStep::Behavior::isolated) {
  return {.pattern = {std::move(expression), true}, .behavior = behavior};
}

SplitStep metaspace_step(const std::filesystem::path& file, const json& component) {
  SplitStep step{.kind = SplitStep::Kind::metaspace, .prepend = SplitStep::Prepend::always};
  step.mark = character_of(file, component, "replacement");
  const json& cuts = member(component, "split");
  step.cuts = !cuts.is_boolean() || cuts.get<bool>();
  const json& adds = member(component, "add_prefix_space");
  const json& scheme = member(component, "prepend_scheme");
  if (scheme == "never" || (scheme.is_null() && adds == false)) {
    step.prepend = SplitStep::Prepend::never;
  } else if (scheme == "first") {
    step.prepend = SplitStep::Prepend::first;
  } else if (!scheme.is_null() && scheme != "always") {
    damaged(file, "'prepend_scheme' of Metaspace is none of always, first and never");
  }
  if (adds == false && step.prepend != SplitStep::Prepend::never) {
    damaged(file, "'add_prefix_space' and 'prepend_scheme' of Metaspace contradict each other");
  }
  return step;
}

void read_byte_level(const json& component, BpeDescription& description) {
  if (is_set(component, "add_prefix_space")) {
    description.splitting.push_back({.kind = SplitStep::Kind::prefix_space});
  }
  const json& use_regex = member(component, "use_regex");  // older files lack it and mean true
  if (!use_regex.is_boolean() || use_regex.get<bool>()) {
    description.splitting.push_back(expression_step(contractions_and_letters));
  }
  description.is_byte_level = true;
}

void read_pre_tokenizer(const json& component, const std::string& type,
                        BpeDescription& description) {
  const std::filesystem::path& file = description.file;
  std::vector<SplitStep>& steps = description.splitting;
  if (description.is_byte_level) {
    unsupported(file, format_message("the pre-tokenizer {} after ByteLevel", type));
  }
  if (type == "ByteLevel") {
    read_byte_level(component, description);
  } else if (type == "Split") {
    SplitStep step{.pattern = pattern_of(file, component, "a Split pre-tokenizer")};
    step.behavior = behavior_of(file, component);
    step.inverted = is_set(component, "invert");
    steps.push_back(step);
  } else if (type == "Digits") {
    steps.push_back(
        expression_step(is_set(component, "individual_digits") ? R"(\p{N})" : R"(\p{N}+)"));
  } else if (type == "Metaspace") {
    steps.push_back(metaspace_step(file, component));
  } else if (type == "WhitespaceSplit") {
    steps.push_back(expression_step(R"(\s+)", SplitStep::Behavior::removed));
  } else if (type == "Whitespace") {
    steps.push_back(expression_step(whitespace_expression, SplitStep::Behavior::removed));
    steps.back().inverted = true;
  } else {
    unsupported(file, format_message("the pre-tokenizer {}", type));
  }
}

std::size_t count_of(const std::filesystem::path& file, const json& component, const char* key) {
  const auto count = whole_number_if_any<std::size_t>(member(component, key));
  if (!count) {
    damaged(file, format_message("'{}' of a Strip decoder is missing or not a count", key));
  }
  return *count;
}

DecodeStep decode_step(const std::filesystem::path& file, const json& component,
                       const std::string& type) {
  if (type == "ByteLevel") {
    return {.kind = DecodeStep::Kind::byte_level};
  }
  if (type == "ByteFallback") {
    return {.kind = DecodeStep::Kind::byte_fallback};
  }
  if (type == "Fuse") {
    return {.kind = DecodeStep::Kind::fuse};
  }
  if (type == "Replace") {
    return {.kind = DecodeStep::Kind::replace,
            .pattern = pattern_of(file, component, "a Replace decoder"),
            .content = text_of(file, component, "content")};
  }
  if (type == "Strip") {
    return {.kind = DecodeStep::Kind::strip,
            .content = character_of(file, component, "content"),
            .start = count_of(file, component, "start"),
            .stop = count_of(file, component, "stop")};
  }
  if (type == "Metaspace") {
    const SplitStep step = metaspace_step(file, component);
    return {.kind = DecodeStep::Kind::metaspace,
            .content = step.mark,
            .drops_first = step.prepend != SplitStep::Prepend::never};
  }
  unsupported(file, format_message("the decoder {}", type));
}

}  // namespace

void read_pipeline(const json& document, BpeDescription& description) {
  const std::filesystem::path& file = description.file;
  for_each_part(
      file, member(document, "normalizer"), "normalizers", "normalizer",
      [&](const json& part, const std::string& type) { read_normalizer(part, type, description); });
  for_each_part(file, member(document, "pre_tokenizer"), "pretokenizers", "pre-tokenizer",
                [&](const json& part, const std::string& type) {
                  read_pre_tokenizer(part, type, description);
                });
  if (const json& decoder = member(document, "decoder"); !decoder.is_null()) {
    description.decoding.emplace();
    for_each_part(file, decoder, "decoders", "decoder",
                  [&](const json& part, const std::string& type) {
                    description.decoding->push_back(decode_step(file, part, type));
                  });
  } else if (description.is_byte_level) {
    // The library would print the tokens as they are spelled, which nobody can read.
    description.decoding.emplace({DecodeStep{.kind = DecodeStep::Kind::byte_level}});
  }
}

}  // namespace fourfold::data::detail
