// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "timed_steps.hpp"

#include <fourfold/train/step_recorder.hpp>

#include <array>
#include <chrono>

namespace fourfold::benchmarks {
namespace {

using train::StepPart;

constexpr double learning_rate = 1e-4;

/// Who times a step, and what it enqueues.
struct Steps {
  train::StepRunner* runner;
  const NextBatches* next;
  device::StreamRef stream;
  std::int64_t made = 0;

  double make() {
    const train::StepBatches batches = (*next)(made, stream);
    runner->run(made, batches, learning_rate, stream);
    ++made;
    return runner->outcome(stream).loss;
  }
};

PhaseTimes phases_of(train::StepRecorder& recorder, const std::vector<schedule::Action>& actions,
                     const device::StreamClock& clock) {
  PhaseTimes phases;
  const std::vector<double> times_s = recorder.actions().times_s(clock);
  for (std::size_t i = 0; i < actions.size(); ++i) {
    if (schedule::is_compute(actions[i].kind)) {
      const bool forward = actions[i].kind == schedule::ActionKind::forward;
      (forward ? phases.forward_s : phases.backward_s) += times_s[2 * i + 1] - times_s[2 * i];
    }
  }
  const std::array parts{std::pair{StepPart::load, &phases.load_s},
                         std::pair{StepPart::reduce, &phases.reduce_s},
                         std::pair{StepPart::update, &phases.update_s}};
  for (const schedule::TimelineSpan& span : recorder.take_spans(0, clock)) {
    for (const auto& [part, seconds] : parts) {
      *seconds += span.name == name(part) ? span.end_s - span.begin_s : 0;
    }
  }
  return phases;
}

PhaseTimes make_recorded(Steps& steps) {
  const auto& schedule = steps.runner->resolved().layout.schedule;
  const std::vector<schedule::Action>& actions = schedule.ranks.front();
  train::StepRecorder recorder(actions.size());
  const device::StreamClock clock(steps.stream);
  const NextBatches noted = [&, next = steps.next](std::int64_t step, device::StreamRef stream) {
    recorder.begin(stream);
    const train::StepBatches batches = (*next)(step, stream);
    recorder.end(StepPart::load, stream);
    return batches;
  };
  steps.runner->record_into(&recorder);
  Steps once{steps.runner, &noted, steps.stream, steps.made};
  once.make();
  steps.made = once.made;
  steps.runner->record_into(nullptr);
  return phases_of(recorder, actions, clock);
}

}  // namespace

StepTimes time_steps(train::StepRunner& runner, comm::Communicator& world, const StepCounts& counts,
                     const NextBatches& next, device::StreamRef stream) {
  using Clock = std::chrono::steady_clock;
  StepTimes times;
  Steps steps{&runner, &next, stream};
  for (int step = 0; step < counts.warmup + counts.timed; ++step) {
    world.barrier();
    const auto start = Clock::now();
    times.loss.push_back(steps.make());
    world.barrier();
    if (step >= counts.warmup) {
      times.step_s.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    }
  }
  for (int step = 0; step < counts.recorded; ++step) {
    times.phases.push_back(make_recorded(steps));
  }
  return times;
}

}  // namespace fourfold::benchmarks
