// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// The executor: every rank of a pipeline also runs the whole model alone, and compares.
#include <fourfold/device/arena.hpp>
#include <fourfold/harness/on_ranks.hpp>
#include <fourfold/parallel/pipeline.hpp>
#include <fourfold/parallel/schedule_generators.hpp>
#include <fourfold/parallel/split_layers.hpp>
#include <fourfold/parallel/stage_layout.hpp>

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

constexpr std::int64_t tokens = 8;
constexpr std::int64_t most_sequences = 2;

model::ModelConfig small_model() {
  model::ModelConfig config;
  config.family = model::Family::llama;
  config.layers = 16;
  config.hidden = 16;
  config.heads = 2;
  config.ffn = 24;
  config.vocab = 29;
  config.context = tokens;
  config.dropout = 0.1;
  config.tie_embeddings = false;  // two copies become one in the seams
  return config.resolved();
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
      : parameters_(model::parameter_table(small_model(), layout.chunks_of(pp.rank())), DType::f32,
                    arena_) {
    model::initialise(parameters_, 11, {});
    const std::vector<model::Units> chunks = layout.chunks_of(pp.rank());
    for (int chunk = 0; chunk < layout.schedule.chunks; ++chunk) {
      model::StageOptions options;
      options.sequences = most_sequences;
      options.tokens = tokens;
      options.slots = layout.schedule.slots(pp.rank(), chunk);
      options.seed = 5;
      if (layout.schedule.splits_backward()) {
        options.backward = model::StageOptions::Backward::split;
      }
      stages_.emplace_back(small_model(), chunks[static_cast<std::size_t>(chunk)], parameters_,
                           seams_, arena_, options);
    }
    std::vector<model::Stage*> stages;
    for (model::Stage& stage : stages_) {
      stages.push_back(&stage);
    }
    pipeline_.emplace(layout.schedule, pp, std::move(stages),
                      [](std::int64_t rows) { return rows; });
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

  const model::Parameters& parameters() const { return parameters_; }
  const std::vector<double>& losses() const { return losses_; }
  bool has_head() const { return pipeline_->head() != nullptr; }

 private:
  static double sum(ConstTensorView loss) {
    const float* value = loss.as<float>();
    double total = 0;
    for (std::int64_t i = 0; i < loss.elements(); ++i) {
      total += static_cast<double>(value[i]);
    }
    return total;
  }

  device::Arena arena_;
  model::Parameters parameters_;
  model::Seams seams_;
  std::vector<model::Stage> stages_;
  std::optional<Pipeline> pipeline_;
  std::vector<double> losses_;
};

/// Both made the same additions in the same order, so every bit is the same.
void compare(const Run& piped, const Run& whole, const std::string& what, Findings& findings) {
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
  const Schedule schedule =
      make_schedule({.name = name, .stages = world.size(), .micro_batches = micro_batches});
  const StageLayout layout{
      schedule,
      split_layers(small_model(),
                   {.stages = world.size(), .chunks = schedule.chunks, .stage_layers = {}}),
      false};
  const auto alone = world.subgroup(std::vector<int>{world.rank()}, "alone");
  Run piped(layout, world);
  Run whole(whole_model(small_model(), micro_batches), *alone);
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
    for (const std::string& name : schedule_names()) {
      for (const int micro_batches : {world.size(), 2 * world.size() + 1}) {
        try_schedule(name, micro_batches, world, findings);
      }
    }
  });
}

}  // namespace
}  // namespace fourfold::parallel
