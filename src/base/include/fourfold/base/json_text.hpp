// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The one way from text to JSON and back. Nothing that the JSON library throws leaves it: what is
/// wrong with a file of unknown origin is a UserError with the place, or a value that tells so.
/// The library's type is the template parameter, so that this header needs none of it; only
/// *.json.cpp files can call these functions.
#pragma once

#include <fourfold/base/error.hpp>
#include <fourfold/base/text.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace fourfold {

// How deep JSON of unknown origin is nested, asked before it is parsed: what copies, compares or
// prints a parsed value calls itself once per level, and a file of brackets would end the process.

/// More than any file of this project, or of those it reads, has.
inline constexpr int most_json_depth = 64;

/// Whether arrays and objects lie in one another more than `most` times. Of text that is no JSON
/// it tells what a parser meets before it finds that out. Reads the text once.
bool is_json_deeper_than(int most, std::string_view text) noexcept;
inline bool is_json_too_deep(std::string_view text) noexcept {
  return is_json_deeper_than(most_json_depth, text);
}

/// For the functions below.
namespace json_detail {

/// "line 3, byte 120: WHAT", `byte` counted from 1.
std::string at_byte(std::string_view text, std::size_t byte, const std::string& what);

/// What a library's exception says, without its name and number in brackets.
std::string reason_in(std::string_view message);

}  // namespace json_detail

/// For the library's sax_parse(): shows what a text has, one after the other, and keeps nothing.
template <class Json>
class JsonEvents final : public Json::json_sax_t {
 public:
  using Event = typename Json::parse_event_t;
  /// @param is_number  of a value
  /// @return false ends the reading
  using Look = std::function<bool(Event event, bool is_number)>;

  explicit JsonEvents(Look look) : look_(std::move(look)) {}

  bool null() override { return look_(Event::value, false); }
  bool boolean(bool /*value*/) override { return look_(Event::value, false); }
  bool number_integer(typename Json::number_integer_t /*number*/) override {
    return look_(Event::value, true);
  }
  bool number_unsigned(typename Json::number_unsigned_t /*number*/) override {
    return look_(Event::value, true);
  }
  bool number_float(typename Json::number_float_t /*number*/,
                    const typename Json::string_t& /*text*/) override {
    return look_(Event::value, true);
  }
  bool string(typename Json::string_t& /*text*/) override { return look_(Event::value, false); }
  bool binary(typename Json::binary_t& /*bytes*/) override { return look_(Event::value, false); }
  bool start_object(std::size_t /*members*/) override { return look_(Event::object_start, false); }
  bool key(typename Json::string_t& /*text*/) override { return look_(Event::key, false); }
  bool end_object() override { return look_(Event::object_end, false); }
  bool start_array(std::size_t /*elements*/) override { return look_(Event::array_start, false); }
  bool end_array() override { return look_(Event::array_end, false); }
  bool parse_error(std::size_t position, const std::string& token,
                   const typename Json::exception& error) override {
    const bool is_too_large = dynamic_cast<const typename Json::out_of_range*>(&error) != nullptr;
    byte_ = is_too_large ? position - token.size() + 1 : position;
    what_ = is_too_large ? token + " is a number that no double holds" : "is not JSON from here on";
    return false;
  }
  /// Where and why the library has stopped.
  std::string defect_in(std::string_view text) const {
    return json_detail::at_byte(text, byte_, what_);
  }

 private:
  Look look_;
  std::size_t byte_ = 1;
  std::string what_ = "is not JSON";
};

/// Whether a text is one JSON object whose members are all numbers, and has one at least. Reading
/// stops at the first that is none; nothing is kept.
template <class Json>
bool is_json_of_numbers(std::string_view text) {
  using Event = typename Json::parse_event_t;
  bool is_inside = false;
  bool has_number = false;
  JsonEvents<Json> events([&](Event event, bool is_number) {
    has_number = has_number || is_number;
    return event == Event::object_start
               ? !std::exchange(is_inside, true)
               : event == Event::key || event == Event::object_end || (is_number && is_inside);
  });
  return Json::sax_parse(text, &events) && has_number;
}

/// The value that `text` holds; "discarded" when it is no JSON, is nested too deep (see
/// is_json_too_deep()) or has a number that no double holds.
/// @param look  the library's callback, which sees keys and values as they come
template <class Json>
Json json_if_any(std::string_view text, const typename Json::parser_callback_t& look = nullptr) {
  // The parser takes a zero byte for the end of its input, and whatever follows would go unseen.
  const bool is_text = text.find('\0') == std::string_view::npos;
  return is_text && !is_json_too_deep(text) ? Json::parse(text, look, false)
                                            : Json(Json::value_t::discarded);
}

/// Why json_if_any() gives nothing for this text: "line 1, byte 8: 1e999 is a number that no double
/// holds".
template <class Json>
std::string json_defect(std::string_view text) {
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    return json_detail::at_byte(text, zero + 1, "is not JSON from here on");
  }
  if (is_json_too_deep(text)) {
    return "is nested too deep (" + std::to_string(most_json_depth) + " levels are read)";
  }
  JsonEvents<Json> events([](auto /*event*/, bool /*is_number*/) { return true; });
  Json::sax_parse(text, &events);
  return events.defect_in(text);
}

/// The value that a file holds.
/// @param file_name  of the file, for the message
/// @param advice     what to do with a file that is no JSON
/// @throws UserError (data_corrupt) with the place
template <class Json>
Json parse_json(std::string_view text, const std::string& file_name,
                const std::string& advice = "fetch or make the file again") {
  Json value = json_if_any<Json>(text);
  if (value.is_discarded()) {
    throw UserError(ExitCode::data_corrupt,
                    printable(file_name) + ": " + json_defect<Json>(text) + "; " + advice);
  }
  return value;
}

/// What `read` makes of a value; in it the library may find that members are missing or of another
/// type.
/// @param refuse  called with what the library says then; does not return
template <class Json, class Read, class Refuse>
auto read_json(const Json& value, const Read& read, const Refuse& refuse) -> decltype(read(value)) {
  try {
    return read(value);
  } catch (const typename Json::exception& error) {
    refuse(json_detail::reason_in(error.what()));
    throw;  // unreachable where `refuse` keeps to its word
  }
}

/// JSON as text. Bytes that are not UTF-8, as names of files may have them, are replaced by U+FFFD:
/// a report must not fail on them.
/// @param indent  spaces of a level; -1: all on one line
template <class Json>
std::string json_text(const Json& value, int indent = -1) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

/// A whole number of JSON within bounds; nothing for a fraction, text or a number beyond: the
/// library would cut off what does not fit.
template <class Integer, class Json>
std::optional<Integer> whole_number_if_any(const Json& value,
                                           Integer least = std::numeric_limits<Integer>::min(),
                                           Integer most = std::numeric_limits<Integer>::max()) {
  const auto within = [&](auto number) {
    return std::cmp_greater_equal(number, least) && std::cmp_less_equal(number, most)
               ? std::optional(static_cast<Integer>(number))
               : std::nullopt;
  };
  return value.is_number_unsigned()  ? within(value.template get<std::uint64_t>())
         : value.is_number_integer() ? within(value.template get<std::int64_t>())
                                     : std::nullopt;
}

/// The same, for what read_json() reads.
/// @throws Json::exception that says what the value is instead
template <class Integer, class Json>
Integer whole_number_of(const Json& value, Integer least = std::numeric_limits<Integer>::min(),
                        Integer most = std::numeric_limits<Integer>::max()) {
  const std::optional<Integer> number = whole_number_if_any(value, least, most);
  if (!number) {
    throw Json::other_error::create(501,
                                    printable(json_text(value).substr(0, 40)) +
                                        " is no whole number from " + std::to_string(least) +
                                        " to " + std::to_string(most),
                                    nullptr);
  }
  return *number;
}

/// What stands for a number that is not finite.
enum class NotFinite { text, null };

/// What Python's json module reads as JSON and the standard does not allow, made standard: numbers
/// that are not finite (NaN, Infinity, -Infinity, and what no double holds, 1e999) become texts of
/// their spelling, so that who uses one finds no number, or null, where a text would be used;
/// halves of surrogate pairs in texts become U+FFFD. All else stays as it is, also what is no JSON
/// at all.
std::string json_from_python(std::string_view text, NotFinite as = NotFinite::text);

}  // namespace fourfold
