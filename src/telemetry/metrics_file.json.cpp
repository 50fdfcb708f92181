// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/telemetry/metrics_file.hpp>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace fourfold::telemetry {
namespace {

using Json = nlohmann::ordered_json;

Json event(const char* name, double unix_time_s) {
  return Json{{"event", name}, {"time", unix_time_s}};
}

std::string line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

[[noreturn]] void cannot_write(const std::filesystem::path& path, int reason) {
  throw UserError(ExitCode::cannot_write,
                  fmt::format("cannot write {} ({}) make room or choose another log.dir",
                              path.string(), std::generic_category().message(reason)));
}

}  // namespace

void MetricsFile::open() {
  file_.reset(::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!file_) {
    cannot_write(path_, errno);
  }
  const off_t size = ::lseek(file_.get(), 0, SEEK_END);
  char last = '\n';
  if (size > 0 && ::pread(file_.get(), &last, 1, size - 1) == 1 && last != '\n') {
    append("\n");
  }
}

void MetricsFile::append(const std::string& text) {
  if (!file_) {
    open();
  }
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = ::write(file_.get(), text.data() + done, text.size() - done);
    if (written < 0 && errno != EINTR) {
      cannot_write(path_, errno);
    }
    done += written > 0 ? static_cast<std::size_t>(written) : 0;
  }
}

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
  json["libraries"] = Json::array();
  for (const auto& [name, version] : run.libraries) {
    json["libraries"].push_back({name, version});
  }
  append(line(json));
}

void MetricsFile::step(const StepRecord& record, double unix_time_s) {
  Json json = event("step", unix_time_s);
  json["step"] = record.step;
  json["loss"] = record.loss;
  json["grad_norm"] = record.grad_norm;
  json["lr"] = record.lr;
  json["tokens"] = record.tokens;
  json["step_s"] = record.step_s;
  json["tokens_per_s"] = record.tokens_per_s;
  json["data_s"] = record.data_s;
  if (record.loss_scale > 0) {
    json["loss_scale"] = record.loss_scale;
    json["skipped_steps"] = record.skipped_steps;
  }
  append(line(json));
}

void MetricsFile::evaluation(const EvalRecord& record, double unix_time_s) {
  Json json = event("eval", unix_time_s);
  json["step"] = record.step;
  json["loss"] = record.loss;
  json["tokens"] = record.tokens;
  json["eval_s"] = record.eval_s;
  append(line(json));
}

void MetricsFile::checkpoint(const CheckpointRecord& record, double unix_time_s) {
  Json json = event("checkpoint", unix_time_s);
  json["step"] = record.step;
  json["path"] = record.path;
  json["bytes"] = record.bytes;
  json["save_s"] = record.save_s;
  json["committed_s"] = record.committed_s;
  append(line(json));
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
  append(line(json));
}

void MetricsFile::end(const RunEnd& record, double unix_time_s) {
  Json json = event("end", unix_time_s);
  json["step"] = record.step;
  json["code"] = record.code;
  json["reason"] = record.reason;
  append(line(json));
}

}  // namespace fourfold::telemetry
