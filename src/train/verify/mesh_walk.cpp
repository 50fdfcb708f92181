// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "mesh_walk.hpp"

#include "logical_values.hpp"
#include "tensor_difference.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/runfile/learning_rate.hpp>
#include <fourfold/train/batch_loader.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace fourfold::train {

using Piece = parallel::ParameterShard::Piece;

/// One rank's part of the run.
class MeshWalk::Rank {
 public:
  Rank(const ResolvedRun& run, std::optional<double> product_tolerance, comm::Communicator& world)
      : config_(&run.config),
        rank_(world.rank()),
        mesh_(run.mesh, with_collectives_of(run.config, world)),
        dataset_(run.config.data.train,
                 dataset_options(run.config, data::TokenDataset::Order::shuffled)),
        runner_(run, mesh_, arena_),
        loader_(dataset_, run.batches, mesh_.coordinate().dp,
                held_tokens(mesh_, run.config.model.context), arena_) {
    arena_.seal();
    runner_.initialise(run.config.train.seed, stream_);
    if (product_tolerance) {
      check_.emplace(rank_, *product_tolerance);
      runner_.show_products_to(&*check_);
    }
  }

  int number() const noexcept { return rank_; }
  /// The same on all ranks.
  const LossScaleState& loss_scale() const noexcept { return runner_.loss_scale().state(); }
  /// Of the last step.
  MatmulErrors products() const { return check_ ? check_->errors() : MatmulErrors{}; }

  void give_gradients(LogicalValues& gradients) {
    gradients.add(runner_.share(), &Piece::gradient, rank_, stream_);
  }
  void give_weights(LogicalValues& weights) {
    runner_.synchronize_state();
    weights.add(runner_.share(), &Piece::master, rank_, stream_);
  }

  void begin_with(const StepStart& start, std::int64_t step) {
    runner_.synchronize_state();
    put_masters(start.weights, model::parameter_table(config_->model), runner_.share(), stream_);
    runner_.loss_scale().restore(start.loss_scale);
    runner_.update_weights_from_masters(stream_, step - start.loss_scale.skipped_steps);
  }

  StepOutcome step(std::int64_t step) {
    if (check_) {
      check_->begin(step);
    }
    const StepBatches batches = loader_.load(step, step * config_->train.global_batch, stream_);
    runner_.run(step, batches, runfile::learning_rate(config_->optim.schedule, step), stream_);
    return runner_.outcome(stream_);
  }

 private:
  static comm::Communicator& with_collectives_of(const runfile::RunConfig& config,
                                                 comm::Communicator& world) {
    world.use(config.mesh.host_collectives);
    return world;
  }

  const runfile::RunConfig* config_;
  int rank_;
  device::Stream stream_;
  device::Arena arena_;
  comm::Mesh mesh_;
  data::TokenDataset dataset_;
  StepRunner runner_;
  BatchLoader loader_;
  std::optional<MatmulCheck> check_;
};

namespace {

/// Observed products are not recorded.
ResolvedRun without_graphs(ResolvedRun run) {
  run.config.train.cuda_graphs = runfile::CudaGraphs::never;
  return run;
}

std::string text_of(const StepOutcome& outcome) {
  return fmt::format("loss {} and gradient norm {} ({}, loss scale {})", outcome.loss,
                     outcome.grad_norm, name(outcome.status), outcome.loss_scale);
}

void compare_outcomes(const std::vector<StepOutcome>& outcomes, std::int64_t step,
                      std::vector<std::string>& disagreements) {
  const StepOutcome& first = outcomes[0];
  for (std::size_t rank = 1; rank < outcomes.size(); ++rank) {
    const StepOutcome& other = outcomes[rank];
    if (!same_bits(other.loss, first.loss) || !same_bits(other.grad_norm, first.grad_norm) ||
        other.status != first.status || other.loss_scale != first.loss_scale) {
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

MeshWalk::MeshWalk(ResolvedRun run, std::optional<double> product_tolerance)
    : run_(product_tolerance ? without_graphs(std::move(run)) : std::move(run)),
      table_(model::parameter_table(run_.config.model)),
      tasks_(static_cast<int>(run_.mesh.ranks()),
             [this, product_tolerance](comm::Communicator& world) {
               return std::make_unique<Rank>(run_, product_tolerance, world);
             }) {
  LogicalValues weights(table_, "initial weight");
  tasks_.run([&](const std::unique_ptr<Rank>& rank) {
    rank->give_weights(weights);
    if (rank->number() == 0) {
      start_.loss_scale = rank->loss_scale();
    }
  });
  start_.weights = weights.take(disagreements_);
}
MeshWalk::~MeshWalk() = default;

StepTrace MeshWalk::make_step(const StepStart* start) {
  LogicalValues gradients(table_, "gradient");
  LogicalValues weights(table_, "weight");
  std::vector<StepOutcome> outcomes(run_.mesh.ranks());   // each rank writes its own
  std::vector<MatmulErrors> products(run_.mesh.ranks());  // likewise
  LossScaleState next_scale;
  tasks_.run([&](const std::unique_ptr<Rank>& rank) {
    if (start != nullptr) {
      rank->begin_with(*start, step_);
    }
    outcomes[rank->number()] = rank->step(step_);
    products[rank->number()] = rank->products();
    if (rank->number() == 0) {
      next_scale = rank->loss_scale();
    }
    rank->give_gradients(gradients);
    rank->give_weights(weights);
  });
  compare_outcomes(outcomes, step_, disagreements_);
  StepTrace trace{outcomes[0],
                  unscaled(gradients.take(disagreements_), outcomes[0].loss_scale),
                  weights.take(disagreements_),
                  {}};
  for (MatmulErrors& of_rank : products) {
    trace.products.add(std::move(of_rank));
  }
  start_ = {.weights = trace.weights, .loss_scale = next_scale};
  ++step_;
  return trace;
}

}  // namespace fourfold::train
