// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The executor: every rank of a pipeline also runs the whole model alone, and compares.
#include "shared_arena.hpp"
#include "small_architecture.hpp"
#include "sweep.hpp"
#include "whole_model.hpp"

#include <fourfold/base/clock.hpp>
#include <fourfold/device/arena.hpp>
#include <fourfold/device/device.hpp>
#include <fourfold/harness/on_ranks.hpp>
#include <fourfold/parallel/action_recorder.hpp>
#include <fourfold/parallel/collective_recorder.hpp>
#include <fourfold/parallel/pipeline.hpp>
#include <fourfold/schedule/schedule_generators.hpp>
#include <fourfold/schedule/split_layers.hpp>

#include <catch2/catch_test_macros.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace fourfold::parallel {
namespace {

using comm::Communicator;
using harness::Findings;
using harness::on_ranks;
using schedule::CollectiveFacts;
using schedule::Schedule;
using schedule::StageLayout;
using schedule::Timeline;
using schedule::TimelineEvent;
using schedule::TimelineSpan;

constexpr std::int64_t tokens = 8;
constexpr std::int64_t most_sequences = 2;

model::Architecture deep_model() {
  return model_test::small_model({.family = model::Family::llama,
                                  .layers = 16,
                                  .hidden = 16,
                                  .heads = 2,
                                  .ffn = 24,
                                  .vocab = 29,
                                  .context = tokens,
                                  .dropout = 0.1,
                                  .tied = false});  // two copies become one in the hooks
}

/// Micro-batches of one or two sequences with ignored targets.
class Batches {
 public:
  explicit Batches(int count) {
    for (int i = 0; i < count; ++i) {
      const std::int64_t sequences = i % 3 == 2 ? 1 : most_sequences;
      Storage& own = storage_.emplace_back();
      for (std::int64_t row = 0; row < sequences * tokens; ++row) {
        own.token.push_back(static_cast<std::int32_t>((7 * row + 3 * i) % 29));
        own.target.push_back(row % 5 == 1 ? -1 : static_cast<std::int32_t>((5 * row + i) % 29));
        own.position.push_back(static_cast<std::int32_t>(row % tokens));
        own.sample.push_back(2 * i + row / tokens);
      }
      const Shape rows{sequences * tokens};
      all_.push_back({.sequences = sequences,
                      .tokens = tokens,
                      .token_N = ConstTensorView(own.token.data(), DType::i32, rows),
                      .target_N = ConstTensorView(own.target.data(), DType::i32, rows),
                      .position_N = ConstTensorView(own.position.data(), DType::i32, rows),
                      .sample_N = ConstTensorView(own.sample.data(), DType::i64, rows),
                      .step = 3});
    }
  }
  const std::vector<model::Batch>& all() const { return all_; }

 private:
  struct Storage {
    std::vector<std::int32_t> token, target, position;
    std::vector<std::int64_t> sample;
  };
  std::deque<Storage> storage_;
  std::vector<model::Batch> all_;
};

/// Some chunks of the model with their pipeline, and what a step gave.
class Run {
 public:
  Run(const StageLayout& layout, Communicator& pp)
      : layout_(layout),
        parameters_(model::parameter_table(deep_model(), layout.chunks_of(pp.rank())), DType::f32,
                    arena_) {
    model::initialise(parameters_, 11, {});
    model::StageOptions options;
    options.sequences = most_sequences;
    options.tokens = tokens;
    options.seed = 5;
    pipeline_.emplace(deep_model(), layout_, pp, parameters_, hooks_, arena_, options);
  }

  void train(const Batches& batches) {
    parameters_.zero_gradients({});
    losses_.clear();
    pipeline_->train(batches.all(), 0.01F,
                     [&](model::Stage& head, int slot) { losses_.push_back(sum(head.loss(slot))); },
                     {});
  }
  double evaluate(const model::Batch& batch) {
    pipeline_->forward_evaluate(batch, {});
    return pipeline_->head() == nullptr ? 0 : sum(pipeline_->head()->loss(0));
  }

  void record_into(ActionRecorder* recorder) { pipeline_->record_into(recorder); }

  const model::Parameters& parameters() const { return parameters_; }
  const std::vector<double>& losses() const { return losses_; }
  bool has_head() { return pipeline_->head() != nullptr; }

 private:
  static double sum(ConstTensorView loss) {
    const float* value = loss.as<float>();
    double total = 0;
    for (std::int64_t i = 0; i < loss.elements(); ++i) {
      total += static_cast<double>(value[i]);
    }
    return total;
  }

  StageLayout layout_;
  fourfold::harness::SharedArena arena_;
  model::Parameters parameters_;
  model::ParallelHooks hooks_;
  std::optional<Pipeline> pipeline_;
  std::vector<double> losses_;
};

/// Both made the same additions in the same order, so every bit is the same.
void compare(Run& piped, const Run& whole, const std::string& what, Findings& findings) {
  for (const model::Parameter& parameter : piped.parameters()) {
    const TensorView reference = whole.parameters().at(parameter.spec.name).gradient;
    const float* a = reference.as<float>();
    const float* b = parameter.gradient.as<float>();
    const bool same = std::equal(a, a + reference.elements(), b);
    const bool empty =
        std::all_of(a, a + reference.elements(), [](float value) { return value == 0; });
    findings.check(same && !empty, fmt::format("{}: gradient of {}", what, parameter.spec.name));
  }
  if (piped.has_head()) {
    std::vector<double> losses = piped.losses();
    std::vector<double> expected = whole.losses();
    findings.check(losses == expected, fmt::format("{}: losses", what));
  }
}

void try_schedule(const std::string& name, int micro_batches, Communicator& world,
                  Findings& findings) {
  const std::string what = fmt::format("{} of {} on {} ranks", name, micro_batches, world.size());
  const Schedule schedule = schedule::make_schedule(
      {.name = name, .stages = world.size(), .micro_batches = micro_batches});
  const StageLayout layout{
      schedule,
      schedule::split_layers(
          deep_model(), {.stages = world.size(), .chunks = schedule.chunks, .stage_layers = {}}),
      false};
  const auto alone = world.subgroup(std::vector<int>{world.rank()}, "alone");
  Run piped(layout, world);
  Run whole(schedule::whole_model(deep_model(), micro_batches), *alone);
  const Batches batches(micro_batches);
  for (int step = 0; step < 2; ++step) {  // again with slots that have been used
    piped.train(batches);
    whole.train(batches);
    compare(piped, whole, what, findings);
    const double expected = whole.evaluate(batches.all().back());
    const double loss = piped.evaluate(batches.all().back());
    findings.check(!piped.has_head() || loss == expected, what + ": evaluation");
  }
}

TEST_CASE("every schedule gives the bits of the whole model, step after step", "[pipeline]") {
  on_ranks([](Communicator& world, Findings& findings) {
    // Of two numbers of micro-batches one for each schedule, the other one on the next number of
    // ranks.
    fourfold::harness::Sweep sweep(2);
    if (world.size() % 2 == 0) {
      sweep.takes_next();
    }
    for (const std::string& name : schedule::schedule_names()) {
      for (const int micro_batches : {world.size(), 2 * world.size() + 1}) {
        if (!sweep.takes_next()) {
          continue;
        }
        try_schedule(name, micro_batches, world, findings);
      }
    }
  });
}

/// What the rules of schedule.hpp say of times: nothing ends before it begins; a rank begins its
/// actions in the order of its list; what an action waits for has ended on this rank; a message is
/// complete on neither side before both have posted it.
void check_times(const Timeline& timeline, const Schedule& schedule, const std::string& what,
                 Findings& findings) {
  const schedule::Dependencies needs = schedule::dependencies(schedule);
  std::vector<std::vector<TimelineEvent>> ranks(schedule.ranks.size());
  for (const TimelineEvent& event : timeline.events) {
    ranks[static_cast<std::size_t>(event.rank)].push_back(event);
  }
  std::vector<std::vector<TimelineEvent>> ends_of(needs.transfers.size());
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    findings.check(ranks[rank].size() == schedule.ranks[rank].size(), what + ": as many actions");
    double before_s = 0;
    std::vector<double> complete_s(needs.transfers.size(), 0);
    for (std::size_t i = 0; i < ranks[rank].size(); ++i) {
      const TimelineEvent& event = ranks[rank][i];
      const std::string place = fmt::format("{}, rank {}: {}", what, rank, str(event.action, 2));
      findings.check(event.action == schedule.ranks[rank][i], place + ": the list's order");
      findings.check(event.begin_s <= event.end_s, place + ": ends after it begins");
      findings.check(before_s <= event.begin_s, place + ": begins after what was before it");
      before_s = is_compute(event.action.kind) ? event.end_s : event.begin_s;
      for (const int wait : needs.nodes[rank][i].waits) {
        // On a device the end of a message is noted on a stream of its own, for which nobody waits.
        const bool is_exact = wait >= 0 && !device::has_own_memory;
        findings.check(!is_exact || complete_s[static_cast<std::size_t>(wait)] <= event.begin_s,
                       place + ": begins after what it waits for");
      }
      if (const int transfer = needs.nodes[rank][i].transfer; transfer >= 0) {
        complete_s[static_cast<std::size_t>(transfer)] = event.end_s;
        ends_of[static_cast<std::size_t>(transfer)].push_back(event);
      }
    }
  }
  for (const std::vector<TimelineEvent>& ends : ends_of) {
    findings.check(ends.size() == 2, what + ": a message has two ends");
    const TimelineEvent& send = is_send(ends[0].action.kind) ? ends[0] : ends[1];
    const TimelineEvent& receive = is_send(ends[0].action.kind) ? ends[1] : ends[0];
    findings.check(send.begin_s <= receive.end_s, what + ": received after it was sent");
  }
}

void record_schedule(const std::string& name, Communicator& world, Findings& findings) {
  const Schedule schedule = schedule::make_schedule(
      {.name = name, .stages = world.size(), .micro_batches = 2 * world.size() + 1});
  const StageLayout layout{
      schedule,
      schedule::split_layers(
          deep_model(), {.stages = world.size(), .chunks = schedule.chunks, .stage_layers = {}}),
      false};
  Run run(layout, world);
  const Batches batches(schedule.micro_batches);
  run.train(batches);  // not recorded
  ActionRecorder recorder(schedule.ranks[static_cast<std::size_t>(world.rank())].size());
  run.record_into(&recorder);
  const device::StreamClock clock({});
  double last_s = 0;
  for (int step = 0; step < 2; ++step) {
    const double begin_s = steady_time_s();
    run.train(batches);
    const std::vector<double> actions_s = recorder.times_s(clock);
    const std::vector<TimelineSpan> spans{{world.rank(), "step", begin_s, steady_time_s()}};
    const Timeline timeline = gather_timeline(schedule, actions_s, spans, 0, world);
    check_times(timeline, schedule, fmt::format("{}, step {}", name, step), findings);
    findings.check(std::ssize(timeline.spans) == world.size(), name + ": spans");
    for (const TimelineEvent& event : timeline.events) {
      const TimelineSpan& span = timeline.spans[static_cast<std::size_t>(event.rank)];
      constexpr double apart_s = 1e-3;  // a device's clock and the host's
      findings.check(span.begin_s <= event.begin_s + apart_s && event.end_s <= span.end_s + apart_s,
                     name + ": within its rank's step");
    }
    findings.check(last_s < timeline.spans[0].end_s, name + ": every step anew");
    last_s = timeline.spans[0].end_s;
  }
  run.record_into(nullptr);
  const std::vector<double> kept = recorder.times_s(clock);
  run.train(batches);
  findings.check(recorder.times_s(clock) == kept, name + ": recorded although nobody asked");
}

TEST_CASE("a recorded step has every action once, in an order that the schedule allows",
          "[pipeline][measured_timeline]") {
  on_ranks([](Communicator& world, Findings& findings) {
    for (const std::string& name : schedule::schedule_names()) {
      record_schedule(name, world, findings);
    }
  });
}

TEST_CASE("times are put on rank 0's clock", "[measured_timeline]") {
  on_ranks([](Communicator& world, Findings& findings) {
    Schedule schedule =
        schedule::make_schedule({.name = "gpipe", .stages = world.size(), .micro_batches = 2});
    const auto rank = static_cast<std::size_t>(world.rank());
    const double ahead_s = 64.0 * world.rank();
    std::vector<double> actions_s;
    for (std::size_t i = 0; i < schedule.ranks[rank].size(); ++i) {
      actions_s.push_back(ahead_s + static_cast<double>(i));
      actions_s.push_back(ahead_s + static_cast<double>(i) + 0.5);
    }
    const CollectiveFacts sum =
        facts_of({comm::Operation::reduce_scatter, 5'000'000'000}, "dp x cp", 2);
    const std::vector<TimelineSpan> spans{{world.rank(), "a", ahead_s - 2, ahead_s - 1},
                                          {world.rank(), "b", ahead_s - 1, ahead_s},
                                          {.rank = world.rank(),
                                           .name = str(sum),
                                           .begin_s = ahead_s - 1,
                                           .end_s = ahead_s,
                                           .kind = schedule::SpanKind::communication,
                                           .collective = sum}};
    const Timeline timeline = gather_timeline(schedule, actions_s, spans, ahead_s, world);
    std::vector<double> next_s(schedule.ranks.size(), 0);
    for (const TimelineEvent& event : timeline.events) {
      double& expected_s = next_s[static_cast<std::size_t>(event.rank)];
      findings.check(event.begin_s == expected_s && event.end_s == expected_s + 0.5, "action");
      expected_s += 1;
    }
    for (std::size_t i = 0; i < timeline.spans.size(); ++i) {
      const TimelineSpan& span = timeline.spans[i];
      const std::vector<std::string> names{"a", "b", "reduce_scatter dp x cp, 5000.00 MB"};
      findings.check(span.rank == static_cast<int>(i / 3), "rank of a span");
      findings.check(span.name == names[i % 3], "name of a span");
      findings.check(span.begin_s == (i % 3 == 0 ? -2 : -1), "time of a span");
      findings.check(span.collective.has_value() == (i % 3 == 2), "what is a collective");
      findings.check(!span.collective || span.collective == sum, "facts of a collective");
    }
  });
}

}  // namespace
}  // namespace fourfold::parallel
