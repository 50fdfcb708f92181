// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "found_json.json.hpp"

#include <fourfold/base/json_text.hpp>
#include <fourfold/telemetry/own_files.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <ranges>
#include <string>

namespace fourfold::telemetry {
namespace {

using IsRight = std::function<bool(const Json&)>;

bool is_count(const Json& value) {
  constexpr std::int64_t most = std::int64_t{1} << 53;  // up to which programs agree on integers
  return whole_number_if_any<std::int64_t>(value, 0, most).has_value();
}

bool is_count_or_null(const Json& value) {
  return value.is_null() || is_count(value);
}

bool is_number_or_null(const Json& value) {
  return value.is_null() || value.is_number();
}

bool is_code(const Json& value) {
  return whole_number_if_any<std::uint8_t>(value).has_value();
}

/// By the name of an event: keys that every version has written, and what they hold.
const std::map<std::string, std::map<std::string, IsRight>>& events() {
  static const IsRight is_text = &Json::is_string;
  static const IsRight is_list = &Json::is_array;
  static const IsRight is_object = &Json::is_object;
  static const std::map<std::string, IsRight> start{
      {"from_step", is_count}, {"steps", is_count}, {"mesh", is_text}, {"rank_hosts", is_list}};
  static const std::map<std::string, std::map<std::string, IsRight>> all{
      {"start", start},
      {"resume", start},
      {"step",
       {{"step", is_count},
        {"loss", is_number_or_null},
        {"grad_norm", is_number_or_null},
        {"lr", is_number_or_null},
        {"tokens", is_count},
        {"step_s", is_number_or_null}}},
      {"eval", {{"step", is_count}, {"loss", is_number_or_null}, {"tokens", is_count}}},
      {"checkpoint", {{"step", is_count}, {"path", is_text}, {"bytes", is_count}}},
      {"memory", {{"step", is_count}, {"rank", is_count}, {"planned_bytes", is_object}}},
      {"end", {{"step", is_count_or_null}, {"code", is_code}, {"reason", is_text}}},  // of both
      {"begin", {{"job", is_text}, {"restart", is_count}, {"chain", is_text}, {"nodes", is_count}}},
      {"released", {{"job", is_text}, {"restart", is_count}, {"nodes", is_count}}},
      {"refused",
       {{"job", is_text}, {"restart", is_count}, {"code", is_code}, {"reason", is_text}}},
  };
  return all;
}

bool is_event(const Json& json) {
  const auto event = events().find(text_in(json, "event"));
  return time_in(json, "time") && event != events().end() &&
         std::ranges::all_of(event->second, [&](const auto& key) {
           return json.contains(key.first) && key.second(json[key.first]);
         });
}

std::string opening_of(const std::string& event) {
  return fmt::format(R"({{"event":"{}","time":)", event);
}

}  // namespace

bool begins_with_events(std::string_view head) {
  constexpr std::string_view blank(" \t\r\n\0", 5);
  for (;;) {
    const std::size_t begin = head.find_first_not_of(blank);
    if (begin == std::string_view::npos) {
      return true;
    }
    head.remove_prefix(begin);
    const std::string_view line = head.substr(0, head.find('\n'));
    const Json json = json_if_any<Json>(line);
    if (!json.is_discarded()) {
      return is_event(json);
    }
    const auto openings = events() | std::views::keys | std::views::transform(opening_of);
    if (std::ranges::any_of(
            openings, [&](const std::string& opening) { return line.starts_with(opening); })) {
      return true;
    }
    if (std::ranges::none_of(
            openings, [&](const std::string& opening) { return opening.starts_with(line); })) {
      return false;
    }
    head.remove_prefix(line.size());  // it may be of anybody: the next one tells
  }
}

}  // namespace fourfold::telemetry
