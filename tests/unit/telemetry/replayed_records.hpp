// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/telemetry/metrics_reader.hpp>
#include <fourfold/telemetry/run_history.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cstdint>
#include <filesystem>
#include <iterator>
#include <optional>
#include <vector>

namespace fourfold::telemetry {

inline RunStart start_at(std::int64_t first_step, std::int64_t steps) {
  RunStart run;
  run.first_step = first_step;
  run.steps = steps;
  run.version = "0.1.0";
  run.mesh = "pp1 dp2 cp1 tp1";
  run.rank_hosts = {"a", "b"};
  run.data_plane_bytes = 6320000;
  run.libraries = {{"MPICH", "4.0.2"}};
  return run;
}

inline StepRecord step_at(std::int64_t step, double loss) {
  return {step, loss, 1.5, 3e-4, step * 64, 0.25, 256, 0.01};
}

/// All that a metrics.jsonl says after its restarts.
struct Records : MetricSink {
  void start(const RunStart& run, double time_s) override {
    starts.push_back({run, time_s});
    last_end.reset();
  }
  void step(const StepRecord& record, double time_s) override { steps.push_back({record, time_s}); }
  void evaluation(const EvalRecord& record, double time_s) override {
    evaluations.push_back({record, time_s});
  }
  void checkpoint(const CheckpointRecord& record, double time_s) override {
    checkpoints.push_back({record, time_s});
  }
  void memory(const MemoryRecord& record, double time_s) override { taken = {record, time_s}; }
  void end(const RunEnd& record, double time_s) override { last_end = {record, time_s}; }

  std::vector<Timed<RunStart>> starts;
  std::vector<Timed<StepRecord>> steps;
  std::vector<Timed<EvalRecord>> evaluations;
  std::vector<Timed<CheckpointRecord>> checkpoints;
  std::optional<Timed<MemoryRecord>> taken;
  std::optional<Timed<RunEnd>> last_end;
  std::int64_t damaged_lines = 0;
};

inline Records replayed(const std::filesystem::path& file) {
  Records records;
  MetricsReader reader(file);
  records.damaged_lines = reader.replay(records);
  CHECK(std::ssize(records.steps) <= reader.most_steps());
  CHECK(std::ssize(records.evaluations) <= reader.most_evaluations());
  return records;
}

}  // namespace fourfold::telemetry
