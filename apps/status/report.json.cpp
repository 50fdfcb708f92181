// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "status.hpp"

#include <fourfold/base/json_text.hpp>

#include <nlohmann/json.hpp>

namespace fourfold::status_program {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json code_or_null(bool known, ExitCode code) {
  return known ? Json(code) : Json(nullptr);
}

Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json json_of(const batch::RunAttempt& attempt) {
  return {{"job", attempt.start.id.empty() ? Json(nullptr) : Json(attempt.start.id)},
          {"restart", attempt.start.restarts},
          {"launch", attempt.start.launch},
          {"nodes", attempt.nodes},
          {"idle_nodes", attempt.idle_nodes},
          {"idle_with_nodes", attempt.idle_with_nodes},
          {"began", attempt.began_unix_s},
          {"until", attempt.until_unix_s},
          {"from_step", attempt.from_step},
          {"to_step", attempt.to_step},
          {"ended", attempt.ended},
          {"code", code_or_null(attempt.ended, attempt.code)},
          {"reason", attempt.ended ? Json(attempt.reason) : Json(nullptr)},
          {"next", text_or_null(attempt.next)},
          {"no_next", text_or_null(attempt.no_next)}};
}

Json json_of(const batch::RefusedStart& start) {
  return {{"job", start.start.id},        {"restart", start.start.restarts},
          {"launch", start.start.launch}, {"time", start.unix_s},
          {"code", start.code},           {"reason", start.reason}};
}

void add_eta(const batch::RunView& view, Json& json) {
  const batch::Eta eta = view.eta.value_or(batch::Eta{});
  json["remaining_s"] = or_null(view.remaining_s);
  json["finish"] = view.eta ? Json(eta.finish_unix_s) : Json(nullptr);
  json["deadline"] = or_null(view.deadline_unix_s);
  json["in_time"] = or_null(eta.in_time);
  json["more_jobs"] = or_null(eta.more_jobs);
}

Json json_of(const batch::RunView& view) {
  const batch::RunVerdict& verdict = view.verdict;
  const bool has_word = verdict.last_word_unix_s > 0;
  Json json;
  json["run"] = view.log_dir.string();
  json["state"] = name(verdict.state);
  json["code"] = code_or_null(verdict.code.has_value(), verdict.code.value_or(ExitCode::finished));
  json["reason"] = verdict.code ? Json(verdict.reason) : Json(nullptr);
  json["retry"] = verdict.code ? Json(verdict.retry) : Json(nullptr);
  json["updated"] = has_word ? Json(verdict.last_word_unix_s) : Json(nullptr);
  json["step"] = view.step;
  json["steps"] = view.steps > 0 ? Json(view.steps) : Json(nullptr);
  json["loss"] = or_null(view.loss);
  json["validation_loss"] = or_null(view.validation_loss);
  json["validation_step"] = or_null(view.validation_step);
  json["tokens_per_s"] = or_null(view.tokens_per_s);
  json["mfu"] = or_null(view.mfu);
  json["step_s"] = or_null(view.step_s);
  add_eta(view, json);
  json["checkpoint"] = view.checkpoint;
  json["checkpoint_step"] = or_null(view.checkpoint_step);
  json["checkpoint_time"] = or_null(view.checkpoint_unix_s);
  json["stop_file"] = view.stop_file;
  json["save_file"] = view.save_file;
  json["finished_file"] = view.finished_file;
  json["hang_file"] = view.hang_file;
  json["node_hours_used"] = view.node_hours.used;
  json["node_hours_lost"] = view.node_hours.lost;
  json["refused"] = view.refused ? json_of(*view.refused) : Json(nullptr);
  json["run_file"] = view.run_file.empty() ? Json(nullptr) : Json(view.run_file.string());
  json["changed"] = Json::array();
  for (const std::filesystem::path& file : view.changed) {
    json["changed"].push_back(file.string());
  }
  json["attempts"] = Json::array();
  for (const batch::RunAttempt& attempt : view.attempts) {
    json["attempts"].push_back(json_of(attempt));
  }
  return json;
}

}  // namespace

std::string to_json(std::span<const batch::RunView> views) {
  Json document;
  document["time"] = views.empty() ? Json(nullptr) : Json(views.front().now_unix_s);
  document["runs"] = Json::array();
  for (const batch::RunView& view : views) {
    document["runs"].push_back(json_of(view));
  }
  return json_text(document, 2);
}

}  // namespace fourfold::status_program
