// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "prepare/documents.hpp"

#include <fourfold/base/json_depth.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>

namespace fourfold::data::detail {
namespace {

/// Goes on until it has seen a member of an object, which no text has that is not JSON, or what is
/// not JSON. Keeps nothing.
class FirstMember : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool found() const noexcept { return found_; }

  bool null() override { return scalar(); }
  bool boolean(bool /*value*/) override { return scalar(); }
  bool number_integer(number_integer_t /*value*/) override { return scalar(); }
  bool number_unsigned(number_unsigned_t /*value*/) override { return scalar(); }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override {
    return scalar();
  }
  bool string(string_t& /*value*/) override { return scalar(); }
  bool binary(binary_t& /*value*/) override { return scalar(); }
  bool start_object(std::size_t /*elements*/) override { return scalar(); }
  bool key(string_t& /*name*/) override {
    after_key_ = true;
    return true;
  }
  bool end_object() override { return true; }
  bool start_array(std::size_t /*elements*/) override { return scalar(); }
  bool end_array() override { return true; }
  bool parse_error(std::size_t /*at*/, const std::string& /*token*/,
                   const nlohmann::json::exception& /*error*/) override {
    return false;
  }

 private:
  /// Or the begin of what follows a key.
  bool scalar() {
    found_ = found_ || after_key_;
    return !found_;
  }

  bool after_key_ = false;
  bool found_ = false;
};

constexpr std::string_view blanks = " \t\r\n";

std::string_view without_mark(std::string_view text) {
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  return text.starts_with(byte_order_mark) ? text.substr(byte_order_mark.size()) : text;
}

/// A whole object, by itself.
bool is_object(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(blanks);
  return begin != std::string_view::npos && line[begin] == '{' && !is_json_too_deep(line) &&
         nlohmann::json::accept(line);
}

}  // namespace

JsonShape json_shape(std::string_view text) {
  text = without_mark(text);
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos || (text[begin] != '{' && text[begin] != '[')) {
    return JsonShape::none;
  }
  text.remove_prefix(begin);
  if (is_object(text.substr(0, text.find('\n')))) {
    return JsonShape::lines;
  }
  FirstMember events;
  const bool is_json = nlohmann::json::sax_parse(text, &events);
  return is_json || events.found() ? JsonShape::document : JsonShape::none;
}

}  // namespace fourfold::data::detail
