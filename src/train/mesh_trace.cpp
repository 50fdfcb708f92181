// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "logical_values.hpp"

#include <fourfold/comm/thread_group.hpp>
#include <fourfold/runfile/learning_rate.hpp>
#include <fourfold/train/batch_loader.hpp>
#include <fourfold/train/mesh_layout.hpp>
#include <fourfold/train/mesh_trace.hpp>
#include <fourfold/train/step_runner.hpp>
#include <fourfold/train/training_data.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <deque>
#include <optional>

namespace fourfold::train {
namespace {

/// What the ranks of one step fill in together.
struct StepInProgress {
  explicit StepInProgress(const std::vector<model::ParameterSpec>& table, int ranks)
      : gradients(table, "gradient"),
        weights(table, "weight"),
        outcomes(static_cast<std::size_t>(ranks)) {}
  LogicalValues gradients;
  LogicalValues weights;
  std::vector<StepOutcome> outcomes;  ///< each rank writes its own
};

/// Everything the rank threads share.
struct Recording {
  Recording(const std::vector<model::ParameterSpec>& table, int ranks, int count)
      : initial_weights(table, "initial weight") {
    for (int i = 0; i < count; ++i) {
      steps.emplace_back(table, ranks);
    }
  }
  LogicalValues initial_weights;
  std::deque<StepInProgress> steps;
};

/// One rank's part of the run.
void train_rank(const runfile::RunConfig& config, comm::Mesh& mesh, Recording& recording) {
  const int rank = mesh.world().rank();
  const device::Stream stream;
  device::Arena arena;
  const data::TokenDataset dataset(config.data.train,
                                   dataset_options(config, data::TokenDataset::Order::shuffled));
  StepRunner runner(config, mesh, arena);
  BatchLoader loader(dataset, batch_plan(config, mesh.shape()), mesh.coordinate().dp,
                     held_tokens(mesh, config.model.context), arena);
  arena.seal();
  using Piece = parallel::ParameterShare::Piece;
  runner.initialise(static_cast<std::uint64_t>(config.train.seed), stream);
  recording.initial_weights.add(runner.share(), &Piece::master, rank, stream);
  std::int64_t step = 0;
  const auto load = [&](std::int64_t number) {
    return loader.load(number, number * config.train.global_batch, stream);
  };
  std::optional<StepBatches> ahead;  // of the next step, which has begun already
  for (StepInProgress& record : recording.steps) {
    const StepBatches batches = ahead ? *ahead : load(step);
    ahead.reset();
    const bool goes_on = goes_ahead(config, mesh.shape()) && step + 1 < std::ssize(recording.steps);
    runner.run(step, batches, runfile::learning_rate(config.optim.schedule, step), stream, goes_on);
    if (goes_on) {
      ahead = load(step + 1);
      runner.go_ahead(*ahead, stream);
    }
    record.outcomes[static_cast<std::size_t>(rank)] = runner.outcome(stream);
    runner.settle_state();
    record.gradients.add(runner.share(), &Piece::gradient, rank, stream);
    record.weights.add(runner.share(), &Piece::master, rank, stream);
    ++step;
  }
}

/// A nan is like itself.
bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

std::string text_of(const StepOutcome& outcome) {
  return fmt::format("loss {} and gradient norm {} ({}, loss scale {})", outcome.loss,
                     outcome.grad_norm, name(outcome.fate), outcome.loss_scale);
}

void compare_outcomes(const std::vector<StepOutcome>& outcomes, std::size_t step,
                      std::vector<std::string>& disagreements) {
  const StepOutcome& first = outcomes[0];
  for (std::size_t rank = 1; rank < outcomes.size(); ++rank) {
    const StepOutcome& other = outcomes[rank];
    if (!same_bits(other.loss, first.loss) || !same_bits(other.grad_norm, first.grad_norm) ||
        other.fate != first.fate || other.loss_scale != first.loss_scale) {
      disagreements.push_back(fmt::format("step {}: rank {} has {}, rank 0 {}", step + 1, rank,
                                          text_of(other), text_of(first)));
      return;
    }
  }
}

/// The gradients of the loss itself: those of an f16 run are multiples of them.
ParameterValues unscaled(ParameterValues gradients, double loss_scale) {
  const auto factor = static_cast<float>(1.0 / loss_scale);
  for (std::vector<float>& values : gradients) {
    std::ranges::for_each(values, [factor](float& value) { value *= factor; });
  }
  return gradients;
}

}  // namespace

MeshTrace trace_mesh(const runfile::RunConfig& config, const comm::MeshShape& mesh, int steps) {
  MeshTrace trace{.mesh = mesh,
                  .optim = config.optim,
                  .table = model::parameter_table(config.model),
                  .initial_weights = {},
                  .steps = {},
                  .disagreements = {}};
  const int ranks = static_cast<int>(mesh.ranks());
  Recording recording(trace.table, ranks, steps);
  comm::run_device_ranks(ranks, [&](comm::Communicator& world) {
    world.use(collectives_of(config));
    comm::Mesh own(mesh, world);
    train_rank(config, own, recording);
  });
  trace.initial_weights = recording.initial_weights.take(trace.disagreements);
  for (std::size_t step = 0; step < recording.steps.size(); ++step) {
    StepInProgress& record = recording.steps[step];
    compare_outcomes(record.outcomes, step, trace.disagreements);
    const StepOutcome& outcome = record.outcomes[0];
    trace.steps.push_back(
        {.loss = outcome.loss,
         .grad_norm = outcome.grad_norm,
         .loss_scale = outcome.loss_scale,
         .fate = outcome.fate,
         .gradients = unscaled(record.gradients.take(trace.disagreements), outcome.loss_scale),
         .weights = record.weights.take(trace.disagreements)});
  }
  return trace;
}

}  // namespace fourfold::train
