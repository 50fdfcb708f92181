// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "run_file_value.toml.hpp"

#include "run_file_message.hpp"

#include <fourfold/base/message.hpp>
#include <fourfold/base/text.hpp>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <vector>

namespace fourfold::runfile {
namespace {

bool in_bounds(const RunKey& key, double number) {
  return std::isfinite(number) && number >= std::max(key.minimum, key.field.lowest) &&
         number <= std::min(key.maximum, key.field.highest) &&
         !(key.above_minimum && number == key.minimum);
}

std::optional<Value> text_value(const RunKey& key, const std::string& text) {
  const RunField& field = key.field;
  if (field.kind == ValueKind::integer && !key.automatic.empty() && text == "auto") {
    return Value(text);
  }
  const bool allowed = field.choices.empty() || std::ranges::count(field.choices, text) > 0 ||
                       (field.has_form && field.has_form(text));
  const bool empty_is_wrong = text.empty() && field.choices.empty() && key.automatic.empty();
  if (field.kind == ValueKind::text && allowed && !empty_is_wrong) {
    return Value(text);
  }
  return std::nullopt;
}

std::optional<Value> list_value(const toml::array& array) {
  std::vector<std::string> texts;
  for (const toml::node& element : array) {
    const auto text = element.value_exact<std::string>();
    if (!text || text->empty()) {
      return std::nullopt;
    }
    texts.push_back(*text);
  }
  return Value(texts);
}

std::optional<Value> integers_value(const RunKey& key, const toml::array& array) {
  std::vector<std::int64_t> numbers;
  for (const toml::node& element : array) {
    const auto number = element.value_exact<std::int64_t>();
    if (!number || !in_bounds(key, static_cast<double>(*number))) {
      return std::nullopt;
    }
    numbers.push_back(*number);
  }
  return Value(numbers);
}

/// The node as a person wrote it, shortened to what fits into a message.
std::string shown(const toml::node& node) {
  std::ostringstream out;
  node.visit([&](const auto& typed) { out << typed; });
  std::string text = out.str();
  if (node.is_string()) {
    text = to_toml(Value(*node.value_exact<std::string>()));
  }
  std::ranges::replace(text, '\n', ' ');
  constexpr std::size_t most = 60;
  return text.size() <= most ? text : text.substr(0, most) + "...";
}

}  // namespace

std::optional<Value> typed_value(const RunKey& key, const toml::node& node) {
  const ValueKind kind = key.field.kind;
  if (const auto text = node.value_exact<std::string>()) {
    return text_value(key, *text);
  }
  if (const auto boolean = node.value_exact<bool>(); boolean && kind == ValueKind::boolean) {
    return Value(*boolean);
  }
  if (const auto boolean = node.value_exact<bool>();
      boolean && std::ranges::count(key.field.choices, "true") > 0) {
    return text_value(key, *boolean ? "true" : "false");
  }
  if (const auto integer = node.value_exact<std::int64_t>();
      integer && in_bounds(key, static_cast<double>(*integer))) {
    if (kind == ValueKind::integer) {
      return Value(*integer);
    }
    if (kind == ValueKind::real) {
      return Value(static_cast<double>(*integer));
    }
    if (key.field.takes_integers) {
      return text_value(key, std::to_string(*integer));
    }
  }
  if (const auto number = node.value_exact<double>();
      number && kind == ValueKind::real && in_bounds(key, *number)) {
    return Value(*number);
  }
  if (const toml::array* array = node.as_array();
      array != nullptr && kind == ValueKind::text_list) {
    return list_value(*array);
  }
  if (const toml::array* array = node.as_array();
      array != nullptr && kind == ValueKind::integer_list) {
    return integers_value(key, *array);
  }
  return std::nullopt;
}

std::string wrong_value(const RunKey& key, const toml::node& node) {
  std::string message =
      format_message("{} = {} is not {}", key.full_name, shown(node), expectation(key));
  if (const auto text = node.value_exact<std::string>()) {
    if (const auto near = nearest(*text, key.field.choices)) {
      message += format_message("; did you mean \"{}\"?", *near);
    }
  }
  if (key.field.kind == ValueKind::text_list && node.is_string()) {
    message += format_message("; write [{}]", shown(node));
  }
  if (const auto number = node.value_exact<double>();
      number && key.field.kind == ValueKind::integer && *number == std::floor(*number) &&
      std::abs(*number) < 1e15) {
    message += format_message("; write {:.0f}", *number);
  }
  return message;
}

}  // namespace fourfold::runfile
