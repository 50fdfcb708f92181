// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/base/error.hpp>
#include <fourfold/base/json_text.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/base/text.hpp>
#include <fourfold/model/architecture.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

namespace fourfold::model_conversion {

/// Members of a config.json by key; null counts as missing, as in transformers.
class Members {
 public:
  Members(const nlohmann::json& object, std::string file_name)
      : object_(object), file_name_(std::move(file_name)) {}

  [[noreturn]] void refuse(const std::string& key, const std::string& why) const {
    throw UserError(ExitCode::config,
                    format_message("{}: {} = {} {}", file_name_, key, shown(key), why));
  }
  [[noreturn]] void not_computed(const std::string& key, const std::string& what) const {
    refuse(key, format_message(
                    "cannot be imported (fourfold computes {} only); choose another model", what));
  }

  const nlohmann::json* find(const std::string& key) const {
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  std::int64_t size(const std::string& key) const {
    const auto value = optional_size(key);
    if (!value) {
      refuse(key, "is missing (the shape of the model depends on it); complete the file");
    }
    return *value;
  }
  std::optional<std::int64_t> optional_size(const std::string& key) const {
    const nlohmann::json* const value = find(key);
    if (value == nullptr) {
      return std::nullopt;
    }
    const auto size = whole_number_if_any<std::int64_t>(*value, 1, 1'000'000'000);
    if (!size) {
      refuse(key, "is no size (a whole number from 1 to 1000000000 is); correct the file");
    }
    return size;
  }
  /// One fact under several names, of which transformers takes any.
  std::optional<std::int64_t> optional_size_of(std::initializer_list<const char*> names) const {
    std::optional<std::int64_t> result;
    std::string first;
    for (const char* const name : names) {
      const auto value = optional_size(name);
      if (value && result && *value != *result) {
        contradict(first, format_message("{} = {}", name, shown(name)));
      }
      first = value && !result ? name : first;
      result = result ? result : value;
    }
    return result;
  }
  std::int64_t size_of(std::initializer_list<const char*> names) const {
    const auto value = optional_size_of(names);
    return value ? *value : size(*names.begin());
  }
  [[noreturn]] void contradict(const std::string& key, const std::string& other) const {
    refuse(key,
           format_message("contradicts {}; correct the one that is wrong, or remove it", other));
  }
  double number(const std::string& key, std::optional<double> otherwise = {}) const {
    const nlohmann::json* const value = find(key);
    if ((value == nullptr && !otherwise) || (value != nullptr && !value->is_number())) {
      refuse(key, "is no number (the model depends on it); correct the file");
    }
    return value == nullptr ? *otherwise : value->get<double>();
  }
  bool flag(const std::string& key, bool otherwise) const {
    const nlohmann::json* const value = find(key);
    if (value != nullptr && !value->is_boolean()) {
      refuse(key, "is neither true nor false; correct the file");
    }
    return value == nullptr ? otherwise : value->get<bool>();
  }
  std::string text(const std::string& key, const std::string& otherwise) const {
    const nlohmann::json* const value = find(key);
    if (value != nullptr && !value->is_string()) {
      refuse(key, "is no text; correct the file");
    }
    return value == nullptr ? otherwise : value->get<std::string>();
  }
  void require_flag(const std::string& key, bool needed, const std::string& what) const {
    if (flag(key, needed) != needed) {
      not_computed(key, what);
    }
  }
  /// "rope_scaling = {...}", for messages.
  std::string stated(const std::string& key) const {
    return fmt::format("{} = {}", key, shown(key));
  }
  /// The first member that is an object; empty: there is none.
  std::string nested() const {
    for (const auto& [key, value] : object_.items()) {
      if (value.is_object()) {
        return key;
      }
    }
    return {};
  }
  std::optional<Members> object(const std::string& key) const {
    const nlohmann::json* const value = find(key);
    if (value == nullptr) {
      return std::nullopt;
    }
    if (!value->is_object()) {
      refuse(key, "is no object; correct the file");
    }
    return Members(*value, fmt::format("{}: in {}", file_name_, key));
  }

 private:
  std::string shown(const std::string& key) const {
    const auto found = object_.find(key);
    return found == object_.end() ? "(nothing)" : printable(json_text(*found).substr(0, 200));
  }

  const nlohmann::json& object_;
  std::string file_name_;
};

/// rope_theta and rope_scaling of a llama from its config.json. transformers 5 has rope_parameters,
/// 4 has rope_theta and rope_scaling; a file that was edited may have all, which must agree then.
/// @param default_theta  where it says none
/// @pre config.context is filled in
/// @throws UserError (config) naming key and value, or both places of a contradiction
void read_rope(const Members& members, double default_theta, model::Architecture& config);

}  // namespace fourfold::model_conversion
