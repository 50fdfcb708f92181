// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "mesh_walk.hpp"

#include "logical_values.hpp"
#include "plan/rank_tasks.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/runfile/learning_rate.hpp>
#include <fourfold/train/batch_loader.hpp>
#include <fourfold/train/resolved_run.hpp>
#include <fourfold/train/step_runner.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

namespace fourfold::train {
namespace {

using Piece = parallel::ParameterShard::Piece;

/// What the ranks of one step fill in together.
struct StepInProgress {
  StepInProgress(const std::vector<model::ParameterSpec>& table, std::size_t ranks)
      : gradients(table, "gradient"), weights(table, "weight"), outcomes(ranks), products(ranks) {}
  LogicalValues gradients;
  LogicalValues weights;
  std::vector<StepOutcome> outcomes;    ///< each rank writes its own
  std::vector<ProductErrors> products;  ///< likewise
  LossScaleState next;                  ///< of the next step; rank 0 writes it
};

/// One rank's part of the run.
class WalkingRank {
 public:
  WalkingRank(const ResolvedRun& run, std::optional<double> product_tolerance,
              comm::Communicator& world)
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

  void give_weights(LogicalValues& weights) {
    runner_.synchronize_state();
    weights.add(runner_.share(), &Piece::master, rank_, stream_);
  }

  /// The same on all ranks: rank 0 gives it.
  void give_loss_scale(LossScaleState& state) const {
    if (rank_ == 0) {
      state = runner_.loss_scale().state();
    }
  }

  void begin_with(const StepStart& start, std::int64_t step) {
    runner_.synchronize_state();
    put_masters(start.weights, model::parameter_table(config_->model), runner_.share(), stream_);
    runner_.loss_scale().restore(start.loss_scale);
    runner_.update_weights_from_masters(stream_, step - start.loss_scale.skipped_steps);
  }

  void step(std::int64_t step, StepInProgress& record) {
    if (check_) {
      check_->begin(step);
    }
    const StepBatches batches = loader_.load(step, step * config_->train.global_batch, stream_);
    runner_.run(step, batches, runfile::learning_rate(config_->optim.schedule, step), stream_);
    if (check_) {
      record.products[rank_] = check_->errors();
    }
    record.outcomes[rank_] = runner_.outcome(stream_);
    give_loss_scale(record.next);
    record.gradients.add(runner_.share(), &Piece::gradient, rank_, stream_);
    give_weights(record.weights);
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
  std::optional<ProductCheck> check_;
};

/// Observed products are not recorded.
runfile::RunConfig without_graphs(runfile::RunConfig config) {
  config.train.cuda_graphs = runfile::CudaGraphs::never;
  return config;
}

/// A nan is like itself.
bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
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

class MeshWalk::Ranks {
 public:
  Ranks(const runfile::RunConfig& config, const comm::MeshShape& mesh,
        std::optional<double> product_tolerance)
      : run_(resolve_run({.config = product_tolerance ? without_graphs(config) : config}, mesh,
                         schedule_file_text({.config = config}))),
        table_(model::parameter_table(config.model)),
        ranks_(mesh.ranks()),
        tasks_(static_cast<int>(mesh.ranks()),
               [this, product_tolerance](comm::Communicator& world) {
                 return std::make_unique<WalkingRank>(run_, product_tolerance, world);
               }) {
    LogicalValues weights(table_, "initial weight");
    tasks_.run([&](const std::unique_ptr<WalkingRank>& rank) {
      rank->give_weights(weights);
      rank->give_loss_scale(start_.loss_scale);
    });
    start_.weights = weights.take(disagreements_);
  }

  StepTrace step(const StepStart* start) {
    StepInProgress record(table_, ranks_);
    tasks_.run([&](const std::unique_ptr<WalkingRank>& rank) {
      if (start != nullptr) {
        rank->begin_with(*start, step_);
      }
      rank->step(step_, record);
    });
    return end_step(record);
  }

  const std::vector<model::ParameterSpec>& table() const noexcept { return table_; }
  const StepStart& start() const noexcept { return start_; }
  std::int64_t steps() const noexcept { return step_; }
  const std::vector<std::string>& disagreements() const noexcept { return disagreements_; }

 private:
  StepTrace end_step(StepInProgress& record) {
    compare_outcomes(record.outcomes, step_, disagreements_);
    const StepOutcome& outcome = record.outcomes[0];
    StepTrace trace{
        .loss = outcome.loss,
        .grad_norm = outcome.grad_norm,
        .loss_scale = outcome.loss_scale,
        .status = outcome.status,
        .gradients = unscaled(record.gradients.take(disagreements_), outcome.loss_scale),
        .weights = record.weights.take(disagreements_),
        .products = {}};
    for (ProductErrors& of_rank : record.products) {
      trace.products.add(std::move(of_rank));
    }
    start_ = {.weights = trace.weights, .loss_scale = record.next};
    ++step_;
    return trace;
  }

  ResolvedRun run_;
  std::vector<model::ParameterSpec> table_;
  std::size_t ranks_;
  std::int64_t step_ = 0;
  StepStart start_;
  std::vector<std::string> disagreements_;
  RankTasks<std::unique_ptr<WalkingRank>> tasks_;  ///< last: its threads use the others
};

MeshWalk::MeshWalk(const runfile::RunConfig& config, const comm::MeshShape& mesh,
                   std::optional<double> product_tolerance)
    : ranks_(std::make_unique<Ranks>(config, mesh, product_tolerance)) {}
MeshWalk::~MeshWalk() = default;

const std::vector<model::ParameterSpec>& MeshWalk::table() const noexcept {
  return ranks_->table();
}
const StepStart& MeshWalk::start() const noexcept {
  return ranks_->start();
}
std::int64_t MeshWalk::steps() const noexcept {
  return ranks_->steps();
}
StepTrace MeshWalk::step() {
  return ranks_->step(nullptr);
}
StepTrace MeshWalk::step_from(const StepStart& start) {
  return ranks_->step(&start);
}
const std::vector<std::string>& MeshWalk::disagreements() const noexcept {
  return ranks_->disagreements();
}

}  // namespace fourfold::train
