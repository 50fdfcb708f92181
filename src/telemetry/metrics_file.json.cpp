// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "found_json.json.hpp"
#include "step_fields.hpp"

#include <fourfold/base/json_text.hpp>

#include <nlohmann/json.hpp>

#include <string>

namespace fourfold::telemetry {
namespace {

Json event(const char* name, double unix_time_s) {
  return Json{{"event", name}, {"time", unix_time_s}};
}

}  // namespace

void MetricsFile::start(const RunStart& run, double unix_time_s) {
  Json json = event(run.first_step == 0 ? "start" : "resume", unix_time_s);
  json["from_step"] = run.first_step;
  json["steps"] = run.steps;
  json["checkpoint"] = run.checkpoint;
  json["version"] = run.version;
  json["mesh"] = run.mesh;
  json["device"] = run.device;
  json["precision"] = run.precision;
  json["rank_hosts"] = run.rank_hosts;
  json["parameters"] = run.parameters;
  json["tokens_per_step"] = run.tokens_per_step;
  if (run.data_plane_bytes > 0) {
    json["data_plane_bytes"] = run.data_plane_bytes;
  }
  if (run.flop_per_token > 0) {
    json["flop_per_token"] = run.flop_per_token;
  }
  if (run.peak_flop_per_s > 0) {
    json["peak_flop_per_s"] = run.peak_flop_per_s;
  }
  json["libraries"] = Json::array();
  for (const auto& [name, version] : run.libraries) {
    json["libraries"].push_back({name, version});
  }
  file_.append(json_text(json));
}

void MetricsFile::step(const StepRecord& record, double unix_time_s) {
  Json json = event("step", unix_time_s);
  for (const StepField& field : step_fields) {
    if (field.is_known(record)) {
      std::visit([&](auto member) { json[std::string(field.key)] = record.*member; }, field.number);
    }
  }
  file_.append(json_text(json));
}

void MetricsFile::evaluation(const EvalRecord& record, double unix_time_s) {
  Json json = event("eval", unix_time_s);
  json["step"] = record.step;
  json["loss"] = record.loss;
  json["tokens"] = record.tokens;
  json["eval_s"] = record.eval_s;
  file_.append(json_text(json));
}

void MetricsFile::checkpoint(const CheckpointRecord& record, double unix_time_s) {
  Json json = event("checkpoint", unix_time_s);
  json["step"] = record.step;
  json["path"] = record.path;
  json["bytes"] = record.bytes;
  json["save_s"] = record.save_s;
  json["committed_s"] = record.committed_s;
  file_.append(json_text(json));
}

void MetricsFile::memory(const MemoryRecord& record, double unix_time_s) {
  Json json = event("memory", unix_time_s);
  json["step"] = record.step;
  json["rank"] = record.rank;
  json["planned_bytes"] = Json::object();
  for (const auto& [use, bytes] : record.planned_bytes) {
    json["planned_bytes"][use] = bytes;
  }
  json["taken_bytes"] = record.taken_bytes;
  if (record.device_total_bytes > 0) {
    json["device_used_bytes"] = record.device_used_bytes;
    json["device_total_bytes"] = record.device_total_bytes;
  }
  file_.append(json_text(json));
}

void MetricsFile::end(const RunEnd& record, double unix_time_s) {
  Json json = event("end", unix_time_s);
  json["step"] = record.step;
  json["code"] = record.code;
  json["reason"] = record.reason;
  file_.append(json_text(json));
}

}  // namespace fourfold::telemetry
