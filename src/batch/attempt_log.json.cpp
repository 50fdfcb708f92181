// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/batch/attempt_log.hpp>
#include <fourfold/io/line_file.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <string>

namespace fourfold::batch {
namespace {

using Json = nlohmann::ordered_json;

std::string line_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

template <class T>
std::optional<T> if_known(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional<T>(json.get<T>());
}

Json head_of(const char* event, double unix_s, const Attempt& attempt) {
  return {{"event", event}, {"time", unix_s}, {"job", attempt.job}, {"restart", attempt.restart}};
}

Attempt attempt_of(const Json& json) {
  return {.chain = json.at("chain"),
          .job = json.at("job"),
          .restart = json.at("restart"),
          .nodes = json.at("nodes"),
          .began_unix_s = json.at("time"),
          .from_step = if_known<std::int64_t>(json.at("from_step")),
          .end = {}};
}

AttemptEnd end_of(const Json& json) {
  return {.unix_s = json.at("time"),
          .code = static_cast<ExitCode>(json.at("code").get<int>()),
          .reason = json.at("reason"),
          .step = if_known<std::int64_t>(json.at("step")),
          .retry = json.at("retry")};
}

void add(const Json& json, std::vector<Attempt>& attempts) {
  const std::string event = json.at("event");
  if (event == "begin") {
    attempts.push_back(attempt_of(json));
  } else if (event == "end") {
    const auto found = std::find_if(attempts.rbegin(), attempts.rend(), [&](const Attempt& one) {
      return one.job == json.at("job") && one.restart == json.at("restart");
    });
    if (found != attempts.rend()) {
      found->end = end_of(json);
    }
  }
}

}  // namespace

std::vector<Attempt> AttemptLog::read() const {
  std::vector<Attempt> attempts;
  std::ifstream in(file_, std::ios::binary);
  for (std::string line; std::getline(in, line);) {
    try {
      add(Json::parse(line), attempts);
    } catch (const Json::exception&) {  // cut off by a full disk, or somebody's own remark
      continue;
    }
  }
  return attempts;
}

void AttemptLog::begin(const Attempt& attempt) const {
  Json json = head_of("begin", attempt.began_unix_s, attempt);
  json["chain"] = attempt.chain;
  json["nodes"] = attempt.nodes;
  json["from_step"] = or_null(attempt.from_step);
  append(line_of(json));
}

void AttemptLog::end(const Attempt& attempt, const AttemptEnd& end) const {
  Json json = head_of("end", end.unix_s, attempt);
  json["code"] = static_cast<int>(end.code);
  json["reason"] = end.reason;
  json["step"] = or_null(end.step);
  json["retry"] = end.retry;
  append(line_of(json));
}

void AttemptLog::append(const std::string& line) const {
  io::LineFile file(file_, "choose another log.dir");
  file.append(line);
  file.sync();
}

}  // namespace fourfold::batch
