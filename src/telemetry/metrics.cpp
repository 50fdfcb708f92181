// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/clock.hpp>
#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/telemetry/metrics.hpp>

#include <utility>

namespace fourfold::telemetry {
MetricsLog::MetricsLog(std::int64_t every_steps, Clock clock)
    : every_steps_(every_steps), clock_(clock ? std::move(clock) : Clock(unix_time_s)) {
  FOURFOLD_EXPECT(every_steps >= 1);
}

void MetricsLog::add(std::unique_ptr<MetricSink> sink) {
  sinks_.push_back(std::move(sink));
}

void MetricsLog::start(const RunStart& run) {
  first_step_ = run.first_step;
  steps_ = run.steps;
  pending_steps_ = 0;
  const double peak_flop_per_s = run.peak_flop_per_s * static_cast<double>(run.rank_hosts.size());
  mfu_of_rate_ = peak_flop_per_s > 0 ? run.flop_per_token / peak_flop_per_s : 0;
  const double now_s = clock_();
  if (may_write_ && !may_write_()) {
    return;
  }
  for (const auto& sink : sinks_) {
    sink->start(run, now_s);
  }
}

void MetricsLog::step(const StepRecord& record) {
  const StepRecord sums = pending_steps_ > 0 ? pending_ : StepRecord{};
  pending_ = record;
  pending_.step_s += sums.step_s;
  pending_.data_s += sums.data_s;
  if (record.device_total_bytes == 0) {
    pending_.device_used_bytes = sums.device_used_bytes;
    pending_.device_total_bytes = sums.device_total_bytes;
  }
  pending_.tokens_per_s =
      record.tokens_per_s * record.step_s + sums.tokens_per_s;  // tokens, until flush()
  ++pending_steps_;
  const bool first = record.step == first_step_ + 1;
  if (first || record.step % every_steps_ == 0 || record.step == steps_) {
    flush();
  }
}

void MetricsLog::pass_on(const std::function<void(MetricSink&)>& call) {
  if (may_write_ && !may_write_()) {
    return;
  }
  for (auto sink = sinks_.begin(); sink != sinks_.end();) {
    try {
      call(**sink);
      ++sink;
    } catch (const UserError& error) {
      log::warning(format_message("{}; the run goes on without it", error.what()));
      sink = sinks_.erase(sink);
    }
  }
}

void MetricsLog::flush() {
  if (pending_steps_ == 0) {
    return;
  }
  StepRecord record = pending_;
  record.tokens_per_s = record.step_s > 0 ? record.tokens_per_s / record.step_s : 0;
  record.step_s /= pending_steps_;
  record.data_s /= pending_steps_;
  record.mfu = record.tokens_per_s * mfu_of_rate_;
  pending_steps_ = 0;
  const double now_s = clock_();
  pass_on([&](MetricSink& sink) { sink.step(record, now_s); });
}

void MetricsLog::evaluation(const EvalRecord& record) {
  const double now_s = clock_();
  pass_on([&](MetricSink& sink) { sink.evaluation(record, now_s); });
}

void MetricsLog::checkpoint(const CheckpointRecord& record) {
  const double now_s = clock_();
  pass_on([&](MetricSink& sink) { sink.checkpoint(record, now_s); });
}

std::int64_t MemoryRecord::all_planned_bytes() const {
  std::uint64_t sum = 0;  // a damaged file may say anything
  for (const auto& [use, bytes] : planned_bytes) {
    sum += bytes;
  }
  return sum;
}

void MetricsLog::memory(const MemoryRecord& record) {
  const double now_s = clock_();
  pass_on([&](MetricSink& sink) { sink.memory(record, now_s); });
}

void MetricsLog::end(const RunEnd& record) {
  flush();
  const double now_s = clock_();
  pass_on([&](MetricSink& sink) { sink.end(record, now_s); });
}

}  // namespace fourfold::telemetry
