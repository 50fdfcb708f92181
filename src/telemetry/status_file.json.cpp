// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "found_json.json.hpp"

#include <fourfold/io/atomic_file.hpp>
#include <fourfold/telemetry/status_file.hpp>

#include <nlohmann/json.hpp>

#include <cmath>
#include <utility>

namespace fourfold::telemetry {
namespace {

constexpr double write_every_s = 5;

Json number_or_null(std::optional<double> number) {
  return number ? Json(*number) : Json(nullptr);
}

}  // namespace

StatusFile::StatusFile(std::filesystem::path file) : path_(std::move(file)) {
  last_checkpoint_.longest_s = longest_save_s_of(path_);
}

void StatusFile::start(const RunStart& run, double unix_time_s) {
  steps_ = run.steps;
  deadline_unix_s_ = run.deadline_unix_s;
  last_step_.step = run.first_step;
  last_step_.loss = std::nan("");
  last_checkpoint_.path = run.checkpoint;
  last_checkpoint_.step = run.first_step;
  remaining_.start(run.first_step, run.steps, unix_time_s);
  write(unix_time_s, nullptr);
}

void StatusFile::step(const StepRecord& record, double unix_time_s) {
  remaining_.step(record.step, record.step_s, unix_time_s);
  last_step_ = record;
  if (unix_time_s - written_s_ >= write_every_s) {
    write(unix_time_s, nullptr);
  }
}

void StatusFile::evaluation(const EvalRecord& record, double unix_time_s) {
  validation_loss_ = record.loss;
  write(unix_time_s, nullptr);
}

void StatusFile::checkpoint(const CheckpointRecord& record, double unix_time_s) {
  last_checkpoint_ = record;
  write(unix_time_s, nullptr);
}

void StatusFile::end(const RunEnd& record, double unix_time_s) {
  write(unix_time_s, &record);
}

void StatusFile::write(double unix_time_s, const RunEnd* end) {
  const bool saved = !last_checkpoint_.path.empty();
  Json json;
  json["state"] = end == nullptr ? "running" : "ended";
  json["step"] = last_step_.step;
  json["steps"] = steps_;
  json["loss"] = last_step_.loss;
  json["validation_loss"] = number_or_null(validation_loss_);
  json["tokens_per_s"] = last_step_.tokens_per_s;
  json["mfu"] = last_step_.mfu > 0 ? Json(last_step_.mfu) : Json(nullptr);
  json["step_s"] = last_step_.step_s > 0 ? Json(last_step_.step_s) : Json(nullptr);
  json["remaining_s"] = number_or_null(remaining_.remaining_s());
  json["deadline"] = deadline_unix_s_ > 0 ? Json(deadline_unix_s_) : Json(nullptr);
  json["checkpoint"] = last_checkpoint_.path;
  json["checkpoint_step"] = saved ? Json(last_checkpoint_.step) : Json(nullptr);
  json["longest_save_s"] =
      last_checkpoint_.longest_s > 0 ? Json(last_checkpoint_.longest_s) : Json(nullptr);
  json["updated"] = unix_time_s;
  json["code"] = end == nullptr ? Json(nullptr) : Json(end->code);
  json["reason"] = end == nullptr ? Json(nullptr) : Json(end->reason);
  io::AtomicFile out(path_);
  out.write(json_text(json, 2) + "\n");
  out.publish();
  written_s_ = unix_time_s;
}

bool is_status_text(std::string_view text) {
  const Json json = json_if_any<Json>(text);
  const std::string state = text_in(json, "state");
  if (json.is_discarded()) {
    return is_cut_of(text, "{\n  \"state\": \"running\",\n  \"step\": ") ||
           is_cut_of(text, "{\n  \"state\": \"ended\",\n  \"step\": ");
  }
  const auto is_number_or_null = [&](const char* key) {
    return json.contains(key) && (json[key].is_number() || json[key].is_null());
  };
  return (state == "running" || state == "ended") && count_in(json, "step") &&
         count_in(json, "steps") && is_number_or_null("loss") &&
         is_number_or_null("validation_loss") && is_number_or_null("tokens_per_s") &&
         json.contains("checkpoint") && json["checkpoint"].is_string() &&
         is_number_or_null("checkpoint_step") && time_in(json, "updated");
}

std::optional<RunStatus> read_status(const std::filesystem::path& status_file) {
  const Json json = json_of_file(status_file);
  const std::optional<double> updated = time_in(json, "updated");
  if (!updated) {
    return std::nullopt;
  }
  RunStatus status;
  status.ended = text_in(json, "state") == "ended";
  status.step = count_in(json, "step").value_or(0);
  status.steps = count_in(json, "steps").value_or(0);
  status.NewestStep::operator=(newest_step_in(json));
  status.validation_loss = number_in(json, "validation_loss");
  status.remaining_s = amount_in(json, "remaining_s");
  status.deadline_unix_s = time_in(json, "deadline");
  status.checkpoint = text_in(json, "checkpoint");
  status.checkpoint_step = count_in(json, "checkpoint_step");
  status.updated_unix_s = *updated;
  status.code = exit_code_in(json, "code");
  status.reason = text_in(json, "reason");
  return status;
}

std::optional<std::int64_t> checkpoint_step_of(const std::filesystem::path& status_file) {
  return count_in(json_of_file(status_file), "checkpoint_step");
}

double longest_save_s_of(const std::filesystem::path& status_file) {
  return amount_in(json_of_file(status_file), "longest_save_s").value_or(0);
}

}  // namespace fourfold::telemetry
