// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/comm/communicator.hpp>
#include <fourfold/device/device.hpp>
#include <fourfold/kernels/library_memory.hpp>
#include <fourfold/parallel/context_cut.hpp>
#include <fourfold/parallel/context_parallel.hpp>
#include <fourfold/train/batch_loader.hpp>
#include <fourfold/train/rank_plan.hpp>
#include <fourfold/train/state_layouts.hpp>
#include <fourfold/train/step_runner.hpp>
#include <fourfold/train/training_state.hpp>

#include <algorithm>
#include <numeric>
#include <span>

namespace fourfold::train {
namespace {

std::vector<std::int64_t> line_of(const comm::MeshShape& mesh, comm::MeshCoordinate place,
                                  comm::Axis axis) {
  std::vector<std::int64_t> ranks;
  for (int position = 0; position < mesh[axis]; ++position) {
    place[axis] = position;
    ranks.push_back(comm::rank_of(mesh, place));
  }
  return ranks;
}

/// As the run's loader and its evaluator will.
void take_batches(const ResolvedRun& run, const comm::Mesh& mesh, device::Arena& arena) {
  const std::int64_t context = run.config.model.context;
  const std::int64_t evaluating = run.config.data.validation.empty() ? 0 : 1;
  for (std::int64_t i = 0; i < run.batches.accumulation_steps() + evaluating; ++i) {
    const MicroBatchBuffer buffer(run.batches.micro_batch, context, held_tokens(mesh, context),
                                  arena);
  }
  if (evaluating > 0) {
    arena.take(device::MemoryUse::workspace, DType::f64, {1});
  }
}

/// TrainingState::image_bytes(): offloaded state is in the host's memory anyway.
std::size_t image_bytes(const runfile::RunConfig& config, const StepRunner& runner) {
  if (!device::has_own_memory) {
    return 0;
  }
  std::size_t bytes = 0;
  if (config.offload.optimizer == runfile::StateTier::none) {
    for (const parallel::ParameterShard::Piece& piece : runner.share().pieces()) {
      const std::size_t states = 1 + runner.optimizer().states_of(piece).size() +
                                 runner.outer_optimizer().moments().size();
      bytes += states * piece.master.bytes();
    }
  }
  if (const auto errors = runner.error_pieces()) {
    for (const parallel::ErrorFeedback::Piece& piece : *errors) {
      bytes += piece.error.bytes();
    }
  }
  return bytes;
}

}  // namespace

std::size_t library_bytes(const ResolvedRun& run, int cp, int compute_capability) {
  if (!device::has_own_memory) {
    return 0;
  }
  const auto uses = parallel::attention_uses(run.context, run.mesh.cp, cp,
                                             run.config.train.deterministic_attention);
  return kernels::library_memory_bytes(uses, run.config.train.precision, compute_capability);
}

std::size_t process_bytes(std::int64_t ranks) {
  constexpr std::size_t mib = std::size_t{1} << 20;
  constexpr std::int64_t most_neighbours = 128;
  return device::has_own_memory ? 0 : (56 + std::min(ranks, most_neighbours)) * mib;
}

RankPlan plan_rank(const ResolvedRun& run, std::int64_t rank, int compute_capability) {
  const comm::MeshShape& mesh = run.mesh;
  const auto world = comm::make_dry_run(static_cast<int>(rank), static_cast<int>(mesh.ranks()));
  comm::Mesh my_mesh(mesh, *world);
  device::Arena arena(device::Arena::Backing::counted);
  const StepRunner runner(run, my_mesh, arena);
  take_batches(run, my_mesh, arena);
  const comm::MeshCoordinate place = my_mesh.coordinate();
  const std::span<const model::Parameter> held = runner.parameters().all();
  RankPlan plan{.coordinate = place,
                .lines = {},
                .chunks = run.layout.chunks_of(place.pp),
                .tokens = parallel::context_chunks(run.config.model.context, mesh.cp, place.cp),
                .tensors = {held.begin(), held.end()}};
  std::ranges::transform(comm::all_axes, plan.lines.begin(),
                         [&](comm::Axis axis) { return line_of(mesh, place, axis); });
  for (std::size_t i = 0; i < device::memory_use_count; ++i) {
    const auto use = static_cast<device::MemoryUse>(i);
    plan.memory_bytes[i] = arena.bytes(use);
    plan.extent_bytes[i] = arena.extent_bytes(use);
  }
  plan.library_bytes = library_bytes(run, place.cp, compute_capability);
  plan.host_bytes = runner.tier().host_bytes();
  plan.process_bytes = process_bytes(mesh.ranks());
  plan.image_bytes = image_bytes(run.config, runner);
  plan.file_bytes = runner.tier().file_bytes();
  return plan;
}

std::vector<RankPlan> plan_stages(const ResolvedRun& run, int compute_capability) {
  std::vector<RankPlan> plans;
  for (int pp = 0; pp < run.mesh.pp; ++pp) {
    const std::int64_t first = comm::rank_of(run.mesh, {.pp = pp, .dp = 0, .cp = 0, .tp = 0});
    plans.push_back(plan_rank(run, first, compute_capability));
  }
  return plans;
}

std::size_t RankPlan::device_bytes() const noexcept {
  return std::accumulate(memory_bytes.begin(), memory_bytes.end(), library_bytes);
}

std::size_t node_bytes(const ResolvedRun& run, std::span<const RankPlan> ranks) {
  const runfile::CheckpointConfig& saves = run.config.checkpoint;
  std::size_t most = 0;
  for (const RankPlan& plan : ranks) {
    most = std::max(most, plan.host_bytes + plan.process_bytes + plan.image_bytes +
                              (device::has_own_memory ? 0 : plan.device_bytes()));
  }
  return saves.async ? most + saves.async_copies * std::ranges::max(saved_bytes(run)) : most;
}

}  // namespace fourfold::train
