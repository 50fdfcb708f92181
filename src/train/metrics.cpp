// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/train/metrics.hpp>

#include <chrono>
#include <utility>

namespace fourfold::train {
namespace {

double system_clock_s() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

}  // namespace

MetricsLog::MetricsLog(Clock clock) : clock_(clock ? std::move(clock) : Clock(system_clock_s)) {}

void MetricsLog::add(std::unique_ptr<MetricSink> sink) {
  sinks_.push_back(std::move(sink));
}

void MetricsLog::start(const RunStart& run) {
  const double now_s = clock_();
  for (const auto& sink : sinks_) {
    sink->start(run, now_s);
  }
}

void MetricsLog::step(const StepRecord& record) {
  const double now_s = clock_();
  for (const auto& sink : sinks_) {
    sink->step(record, now_s);
  }
}

void MetricsLog::evaluation(const EvalRecord& record) {
  const double now_s = clock_();
  for (const auto& sink : sinks_) {
    sink->evaluation(record, now_s);
  }
}

void MetricsLog::checkpoint(const CheckpointRecord& record) {
  const double now_s = clock_();
  for (const auto& sink : sinks_) {
    sink->checkpoint(record, now_s);
  }
}

void MetricsLog::end(const RunEnd& record) {
  const double now_s = clock_();
  for (const auto& sink : sinks_) {
    sink->end(record, now_s);
  }
}

}  // namespace fourfold::train
