// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "verbs.hpp"

#include <fourfold/base/json_text.hpp>

#include <nlohmann/json.hpp>

namespace fourfold::apps {
namespace {

using nlohmann::ordered_json;

template <class Value>
ordered_json or_null(const std::optional<Value>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

}  // namespace

std::string to_json(const std::vector<FileFacts>& files) {
  ordered_json list = ordered_json::array();
  for (const FileFacts& facts : files) {
    list.push_back({{"path", facts.path},
                    {"format", facts.format},
                    {"type", facts.type},
                    {"size_bytes", facts.size_bytes},
                    {"tokens", facts.tokens},
                    {"documents", or_null(facts.documents)},
                    {"smallest_token", facts.smallest_token},
                    {"largest_token", facts.largest_token},
                    {"tokenizer", or_null(facts.tokenizer)},
                    {"first_tokens", facts.first_tokens},
                    {"first_text", or_null(facts.first_text)}});
  }
  // Text cut inside a character is not UTF-8; JSON has to be.
  return json_text(list, 2);
}

}  // namespace fourfold::apps
