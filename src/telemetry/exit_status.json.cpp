// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "found_json.json.hpp"

#include <fourfold/base/clock.hpp>
#include <fourfold/io/atomic_file.hpp>
#include <fourfold/telemetry/exit_status.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>

namespace fourfold::telemetry {
namespace {

constexpr const char* running = "running";

/// Bytes that are not UTF-8 (a file name, say) are replaced instead of refused: the file must be
/// written.
std::string dump(const Json& json) {
  return json_text(json, 2) + "\n";
}

/// A value that is not known is null.
template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

std::optional<std::string> if_known(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional(json.get<std::string>());
}

bool has_all(const Json& json, std::initializer_list<const char*> keys) {
  return json.is_object() &&
         std::ranges::all_of(keys, [&](const char* key) { return json.contains(key); });
}

/// Its code is not looked at.
bool is_like_exit_status(const Json& json) {
  return has_all(json, {"code", "reason", "step", "checkpoint", "bad_nodes", "retry"}) &&
         json["reason"].is_string() &&
         (whole_number_if_any<std::int64_t>(json["step"], 0) || json["step"].is_null()) &&
         (json["checkpoint"].is_string() || json["checkpoint"].is_null()) &&
         json["bad_nodes"].is_array() && std::ranges::all_of(json["bad_nodes"], &Json::is_string);
}

bool is_exit_status(const Json& json) {
  return is_like_exit_status(json) && exit_code_in(json, "code") && json["retry"].is_boolean();
}

bool is_running(const Json& json) {
  return is_like_exit_status(json) && json["code"].is_null() &&
         (json["retry"].is_null() || json["retry"].is_boolean());
}

/// Of each end that there may be.
bool is_cut_exit(std::string_view text) {
  const auto opens = [&](std::string_view code) {
    return is_cut_of(text, fmt::format("{{\n  \"code\": {},\n  \"reason\": \"", code));
  };
  constexpr int highest_code = 255;
  for (int code = 0; code <= highest_code; ++code) {
    if (opens(std::to_string(code))) {
      return true;
    }
  }
  return opens("null");
}

/// Whose it is, and of when, goes after what it says.
void replace(const std::filesystem::path& file, Json json) {
  const BatchJob job = BatchJob::of_this_process();
  json["time"] = unix_time_s();
  json["job"] = job.id.empty() ? Json(nullptr) : Json(job.id);
  json["restart"] = job.restarts;
  if (job.launch > 0) {
    json["launch"] = job.launch;
  }
  io::AtomicFile out(file);
  out.write(dump(json));
  out.publish();
}

}  // namespace

std::string stop_reason(const std::string& checkpoint, std::string_view cause) {
  return fmt::format(
      "{}: {}", checkpoint.empty() ? "stopped before the first step" : "saved and stopped", cause);
}

bool worth_retrying(ExitCode code) noexcept {
  return code == ExitCode::stopped_saved || code == ExitCode::node_fault || code == ExitCode::hang;
}

void write_exit_status(const std::filesystem::path& file, const ExitStatus& status) {
  Json json;
  json["code"] = status.code;
  json["reason"] = status.reason;
  json["step"] = or_null(status.step);
  json["checkpoint"] = or_null(status.checkpoint);
  json["bad_nodes"] = status.bad_nodes;
  json["retry"] = worth_retrying(status.code) && !status.hold;
  if (status.told_to_stop) {
    json["told_to_stop"] = true;
  }
  replace(file, std::move(json));
}

void write_running(const std::filesystem::path& file) {
  Json json;
  json["code"] = nullptr;
  json["reason"] = running;
  json["step"] = nullptr;
  json["checkpoint"] = nullptr;
  json["bad_nodes"] = Json::array();
  json["retry"] = nullptr;
  replace(file, std::move(json));
}

ExitRecord read_exit(const std::filesystem::path& file) {
  const Json json = json_of_file(file);
  ExitRecord record;
  if (!json.is_object()) {
    return record;
  }
  record.by = {.id = text_in(json, "job"),
               .restarts = count_in(json, "restart").value_or(0),
               .launch = count_in(json, "launch").value_or(0)};
  record.unix_s = time_in(json, "time");
  record.says_running = !exit_code_in(json, "code") && text_in(json, "reason") == running;
  if (is_exit_status(json)) {
    const ExitCode code = exit_code_in(json, "code").value();
    record.end =
        ExitStatus{.code = code,
                   .reason = json["reason"],
                   .step = whole_number_if_any<std::int64_t>(json["step"], 0),
                   .checkpoint = if_known(json["checkpoint"]),
                   .bad_nodes = json["bad_nodes"],
                   .hold = worth_retrying(code) && !json["retry"].get<bool>(),
                   .told_to_stop = json.contains("told_to_stop") && json["told_to_stop"] == true};
  }
  return record;
}

bool is_exit_text(std::string_view text) {
  const Json json = json_if_any<Json>(text);
  return json.is_discarded() ? is_cut_exit(text) : is_exit_status(json) || is_running(json);
}

bool is_hang_text(std::string_view text) {
  const Json json = json_if_any<Json>(text);
  const auto is_of = [&](ExitCode code) {
    return json.is_discarded()
               ? is_cut_of(text, fmt::format("{{\n  \"code\": {},\n  \"kind\": \"", code))
               : exit_code_in(json, "code") == code;
  };
  return (is_of(ExitCode::hang) || is_of(ExitCode::node_fault)) &&
         (json.is_discarded() ||
          (has_all(json, {"kind", "reason", "culprits"}) && json["kind"].is_string() &&
           json["reason"].is_string() && json["culprits"].is_array()));
}

}  // namespace fourfold::telemetry
