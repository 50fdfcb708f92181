// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "found_json.json.hpp"

#include <fourfold/base/json_text.hpp>
#include <fourfold/telemetry/own_files.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace fourfold::telemetry {
namespace {

struct Key {
  const char* name;
  bool (*is_right)(const Json& json, const char* key);
};

struct Event {
  const char* name;
  std::vector<Key> keys;  ///< which every version has written
};

bool is_count(const Json& json, const char* key) {
  return count_in(json, key).has_value();
}

bool is_count_or_null(const Json& json, const char* key) {
  return json.contains(key) && (json[key].is_null() || is_count(json, key));
}

bool is_number_or_null(const Json& json, const char* key) {
  return json.contains(key) && (json[key].is_null() || json[key].is_number());
}

bool is_code(const Json& json, const char* key) {
  return exit_code_in(json, key).has_value();
}

bool is_text(const Json& json, const char* key) {
  return json.contains(key) && json[key].is_string();
}

bool is_list(const Json& json, const char* key) {
  return json.contains(key) && json[key].is_array();
}

bool is_object(const Json& json, const char* key) {
  return json.contains(key) && json[key].is_object();
}

const std::vector<Event>& events() {
  static const std::vector<Key> start{
      {"from_step", is_count}, {"steps", is_count}, {"mesh", is_text}, {"rank_hosts", is_list}};
  static const std::vector<Event> all{
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
  const std::string name = text_in(json, "event");
  return time_in(json, "time") && std::ranges::any_of(events(), [&](const Event& event) {
           return name == event.name && std::ranges::all_of(event.keys, [&](const Key& key) {
                    return key.is_right(json, key.name);
                  });
         });
}

std::string opening_of(const Event& event) {
  return fmt::format(R"({{"event":"{}","time":)", event.name);
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
    if (std::ranges::any_of(
            events(), [&](const Event& event) { return line.starts_with(opening_of(event)); })) {
      return true;
    }
    if (std::ranges::none_of(
            events(), [&](const Event& event) { return opening_of(event).starts_with(line); })) {
      return false;
    }
    head.remove_prefix(line.size());  // it may be of anybody: the next one tells
  }
}

}  // namespace fourfold::telemetry
