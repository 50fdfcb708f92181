// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/io/atomic_file.hpp>
#include <fourfold/telemetry/status_file.hpp>

#include <nlohmann/json.hpp>

#include <cmath>
#include <fstream>

namespace fourfold::telemetry {
namespace {

using Json = nlohmann::ordered_json;

constexpr double write_every_s = 5;

Json number_or_null(std::optional<double> number) {
  return number ? Json(*number) : Json(nullptr);
}

}  // namespace

void StatusFile::start(const RunStart& run, double unix_time_s) {
  steps_ = run.steps;
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
  json["remaining_s"] = number_or_null(remaining_.remaining_s());
  json["checkpoint"] = last_checkpoint_.path;
  json["checkpoint_step"] = saved ? Json(last_checkpoint_.step) : Json(nullptr);
  json["updated"] = unix_time_s;
  json["code"] = end == nullptr ? Json(nullptr) : Json(end->code);
  json["reason"] = end == nullptr ? Json(nullptr) : Json(end->reason);
  io::AtomicFile out(path_);
  out.write(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  out.publish();
  written_s_ = unix_time_s;
}

std::optional<std::int64_t> checkpoint_step_of(const std::filesystem::path& status_file) {
  std::ifstream in(status_file, std::ios::binary);
  const Json json = Json::parse(in, nullptr, false);
  if (!json.is_object() || !json.contains("checkpoint_step") ||
      !json["checkpoint_step"].is_number_integer()) {
    return std::nullopt;
  }
  return json["checkpoint_step"].get<std::int64_t>();
}

}  // namespace fourfold::telemetry
