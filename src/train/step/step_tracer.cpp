// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/clock.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/comm/clock_offset.hpp>
#include <fourfold/io/atomic_file.hpp>
#include <fourfold/parallel/action_recorder.hpp>
#include <fourfold/plan/simulate.hpp>
#include <fourfold/plan/timeline_svg.hpp>
#include <fourfold/plan/timeline_trace.hpp>
#include <fourfold/telemetry/run_files.hpp>
#include <fourfold/train/step_tracer.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string>

namespace fourfold::train {

namespace {

double bubble_share(const schedule::Timeline& timeline) {
  const schedule::TimelineSummary summary = summarize(timeline);
  return summary.makespan_s() > 0 ? summary.bubble_s() / summary.makespan_s() : 0;
}

void write_file(const std::filesystem::path& path, const std::string& text) {
  io::AtomicFile file(path);
  file.write(text);
  file.publish();
}

}  // namespace

StepTracer::StepTracer(const runfile::RunConfig& config, const schedule::Schedule& schedule,
                       comm::Mesh& mesh, std::int64_t first_step, device::StreamRef stream)
    : schedule_(&schedule),
      pp_(&mesh.axis(comm::Axis::pp)),
      writes_(mesh.world().rank() == 0),
      folder_(config.log.dir),
      stream_(stream),
      clock_(stream) {
  const std::int64_t steps = config.train.steps;
  begin_ = std::min(first_step + 1, steps - 1);
  end_ = std::min(begin_ + config.log.trace_steps, steps);
  if (!config.log.trace || begin_ >= end_) {
    end_ = begin_;
    return;
  }
  for (int i = 0; i < 2; ++i) {
    recorders_.emplace_back(schedule.ranks[pp_->rank()].size());
  }
  clock_offset_s_ = comm::clock_offset_s(*pp_, comm::machine_identity(), steady_time_s);
}

StepRecorder* StepTracer::recorder(std::int64_t step) {
  return begin_ <= step && step < end_ ? &recorders_[step % 2] : nullptr;
}

void StepTracer::finish_step(std::int64_t step) {
  if (StepRecorder* const made = recorder(step - 1)) {
    take_in(step, *made);
  }
  if (recorder(step) != nullptr) {
    clock_.renew(stream_);
  }
}

void StepTracer::take_in(std::int64_t step, StepRecorder& made) {
  const std::vector<double> actions_s = made.actions().times_s(clock_);
  std::vector<schedule::TimelineSpan> spans = made.take_spans(pp_->rank(), clock_);
  if (StepRecorder* const before = recorder(step - 2)) {  // gathers of weights that it had begun
    std::ranges::move(before->collectives().take_spans(pp_->rank(), clock_),
                      std::back_inserter(spans));
  }
  schedule::Timeline measured =
      parallel::gather_timeline(*schedule_, actions_s, spans, clock_offset_s_, *pp_);
  if (!writes_) {
    return;
  }
  if (!origin_s_) {
    origin_s_ = std::ranges::min(measured.spans, {}, &schedule::TimelineSpan::begin_s).begin_s;
  }
  shift(measured, -*origin_s_);
  measured.name = fmt::format("step {}, measured", step);
  schedule::Timeline planned = plan::simulate(*schedule_, plan::measured_costs(measured));
  planned.name = fmt::format("step {}, planned by its costs", step);
  shift(planned, summarize(measured).begin_s);
  try {
    write(step, measured, planned);
  } catch (const Error& error) {
    log::warning(format_message("cannot write the trace: {}", error.what()));
  }
}

void StepTracer::write(std::int64_t step, const schedule::Timeline& measured,
                       const schedule::Timeline& planned) {
  const telemetry::RunFiles files(folder_);
  timelines_.push_back(measured);
  timelines_.push_back(planned);
  write_file(files.trace(), plan::timeline_trace(timelines_));
  const std::string shares =
      fmt::format("bubble {:.1f} % measured, {:.1f} % planned by the step's costs",
                  100 * bubble_share(measured), 100 * bubble_share(planned));
  write_file(files.timeline(),
             plan::timeline_svg(
                 std::array{measured, planned},
                 {.title = fmt::format("{}, step {}", schedule_->name, step), .subtitle = shares}));
  log::info(format_message("traced step {}: {} ({})", step, shares, (files.trace()).string()));
  for (const std::string& line : schedule::collective_lines(measured)) {
    log::info(format_message("traced step {}: {}", step, line));
  }
}

}  // namespace fourfold::train
