// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/json_text.hpp>
#include <fourfold/batch/attempt_log.hpp>
#include <fourfold/io/line_file.hpp>
#include <fourfold/io/line_reader.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace fourfold::batch {
namespace {

using Json = nlohmann::ordered_json;

std::string line_of(const Json& json) {
  return json_text(json);
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

/// Only where there is one.
void add_text(const char* key, const std::string& text, Json& json) {
  if (!text.empty()) {
    json[key] = text;
  }
}

/// As much of a number as an integer of these limits can be: none that a damaged line holds does
/// harm.
template <class T>
T whole_number(const Json& json, double low, double high) {
  return static_cast<T>(std::clamp(json.get<double>(), low, high));
}

constexpr std::int64_t most_steps = std::int64_t{1} << 53;
constexpr int most_nodes = 1'000'000;
constexpr int lowest_code = -1;  // not one that a process can end with, as is the highest
constexpr int highest_code = 256;

std::optional<std::int64_t> step_if_known(const Json& json) {
  return json.is_null() ? std::nullopt
                        : std::optional(whole_number<std::int64_t>(json, 0, most_steps));
}

/// @param start  whose line it is; "launch" stands there if it is not 0
Json head_of(const char* event, double unix_s, const BatchJob& start) {
  Json json{{"event", event}, {"time", unix_s}, {"job", start.id}, {"restart", start.restarts}};
  if (start.launch > 0) {
    json["launch"] = start.launch;
  }
  return json;
}

BatchJob start_in(const Json& json) {
  const auto count = [](const Json& value) {
    return whole_number<std::int64_t>(value, 0, std::numeric_limits<int>::max());
  };
  return {.id = json.at("job"),
          .restarts = count(json.at("restart")),
          .launch = json.contains("launch") ? count(json["launch"]) : 0};
}

ExitCode code_in(const Json& json) {
  return ExitCode{whole_number<int>(json.at("code"), lowest_code, highest_code)};
}

/// Nothing where a line of an earlier version does not say.
std::optional<double> time_in(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() || found->is_null() ? std::nullopt
                                                 : std::optional(found->get<double>());
}

int nodes_if_told(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() ? 0 : whole_number<int>(*found, 0, most_nodes);
}

/// None where a line of an earlier version does not say.
std::vector<int> node_counts_in(const Json& json) {
  std::vector<int> counts;
  if (const auto found = json.find("idle_with_nodes"); found != json.end()) {
    for (const Json& count : *found) {
      counts.push_back(whole_number<int>(count, 1, most_nodes));
    }
  }
  return counts;
}

Attempt attempt_of(const Json& json) {
  BatchJob start = start_in(json);
  start.chain = json.at("chain");
  return {.start = std::move(start),
          .nodes = whole_number<int>(json.at("nodes"), 1, most_nodes),
          .held_nodes = nodes_if_told(json, "held_nodes"),
          .idle_nodes = nodes_if_told(json, "idle_nodes"),
          .idle_with_nodes = node_counts_in(json),
          .began_unix_s = json.at("time"),
          .job_began_unix_s = time_in(json, "job_began"),
          .from_step = step_if_known(json.at("from_step")),
          .exit_unix_s = time_in(json, "exit_time"),
          .no_next = json.value("no_next", ""),
          .run_file = json.value("run_file", "")};
}

AttemptEnd end_of(const Json& json) {
  return {.unix_s = json.at("time"),
          .code = code_in(json),
          .reason = json.at("reason"),
          .step = step_if_known(json.at("step")),
          .retry = json.at("retry"),
          .next = json.value("next", ""),
          .no_next = json.value("no_next", "")};
}

RefusedStart refused_in(const Json& json) {
  return {.start = start_in(json),
          .unix_s = json.at("time"),
          .code = code_in(json),
          .reason = json.at("reason")};
}

/// The newest that is this launch; null: none.
template <class Attempts>
auto newest(Attempts& attempts, const BatchJob& start) {
  const auto found = std::find_if(attempts.rbegin(), attempts.rend(), [&](const Attempt& one) {
    return one.start.is_same_launch(start);
  });
  return found == attempts.rend() ? nullptr : &*found;
}

void add(const Json& json, AttemptRecords& records) {
  const std::string event = json.at("event");
  if (event == "begin") {
    records.attempts.push_back(attempt_of(json));
    return;
  }
  Attempt* const attempt = newest(records.attempts, start_in(json));
  if (event == "refused") {
    records.refused.push_back(refused_in(json));
    if (attempt != nullptr && !attempt->end) {
      attempt->refused = records.refused.back();
    }
  } else if (event == "end" && attempt != nullptr) {
    attempt->end = end_of(json);
  } else if (event == "released" && attempt != nullptr) {
    attempt->released = {.unix_s = json.at("time"),
                         .nodes = whole_number<int>(json.at("nodes"), 1, most_nodes)};
  }
}

}  // namespace

const Attempt* AttemptRecords::find(const BatchJob& start) const {
  return newest(attempts, start);
}

AttemptRecords AttemptLog::read() const {
  AttemptRecords records;
  std::error_code ignored;  // of what cannot be looked at nothing is known
  if (!std::filesystem::is_regular_file(std::filesystem::symlink_status(file_, ignored))) {
    return records;
  }
  io::LineReader reader(file_);
  for (std::string_view line; reader.next(line);) {
    try {
      add(json_if_any<Json>(line), records);
    } catch (const Json::exception&) {  // cut off by a full disk, or somebody's own remark
      continue;
    }
  }
  return records;
}

void AttemptLog::begin(const Attempt& attempt) const {
  Json json = head_of("begin", attempt.began_unix_s, attempt.start);
  json["chain"] = attempt.start.chain;
  json["nodes"] = attempt.nodes;
  if (attempt.held_nodes > attempt.nodes) {
    json["held_nodes"] = attempt.held_nodes;
  }
  if (attempt.idle_nodes > 0) {
    json["idle_nodes"] = attempt.idle_nodes;
  }
  if (!attempt.idle_with_nodes.empty()) {
    json["idle_with_nodes"] = attempt.idle_with_nodes;
  }
  if (attempt.job_began_unix_s) {
    json["job_began"] = *attempt.job_began_unix_s;
  }
  json["from_step"] = or_null(attempt.from_step);
  json["exit_time"] = or_null(attempt.exit_unix_s);
  add_text("no_next", attempt.no_next, json);
  add_text("run_file", attempt.run_file, json);
  append(line_of(json));
}

void AttemptLog::end(const Attempt& attempt, const AttemptEnd& end) const {
  Json json = head_of("end", end.unix_s, attempt.start);
  json["code"] = end.code;
  json["reason"] = end.reason;
  json["step"] = or_null(end.step);
  json["retry"] = end.retry;
  add_text("next", end.next, json);
  add_text("no_next", end.no_next, json);
  append(line_of(json));
}

void AttemptLog::release(const Attempt& attempt, const JobRelease& release) const {
  Json json = head_of("released", release.unix_s, attempt.start);
  json["nodes"] = release.nodes;
  append(line_of(json));
}

void AttemptLog::refuse(const RefusedStart& start) const {
  Json json = head_of("refused", start.unix_s, start.start);
  json["code"] = start.code;
  json["reason"] = start.reason;
  append(line_of(json));
}

void AttemptLog::append(const std::string& line) const {
  io::LineFile file(file_, "choose another log.dir");
  file.append(line);
  file.sync();
}

}  // namespace fourfold::batch
