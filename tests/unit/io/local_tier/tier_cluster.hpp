// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "save/position_coded_state.hpp"

#include <fourfold/comm/fail_together.hpp>
#include <fourfold/comm/thread_group.hpp>
#include <fourfold/io/checkpoint_find.hpp>
#include <fourfold/io/local_tier.hpp>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace fourfold::io_test {

/// A run whose ranks are threads on several nodes, each with a folder of its own below `root`.
struct TierCluster {
  std::filesystem::path root;
  std::vector<int> node_of_rank;
  bool partner = true;
  int keep_last = 1;
  NamedCut cut = all_cuts()[0];
  std::vector<TensorSpec> model = small_model();
  io::StoreOptions options = {.keep_last = 0, .plan = {.smallest_part_bytes = 64}};
  bool takes_lease = false;

  int ranks() const { return static_cast<int>(node_of_rank.size()); }
  std::filesystem::path store() const { return root / "checkpoints"; }
  std::vector<std::int64_t> checkpoint_steps() const { return io::list_steps(store()); }
  std::filesystem::path node(int number) const { return root / ("node" + std::to_string(number)); }

  using Body = std::function<void(io::LocalTier&, io::CheckpointStore&, comm::Communicator&)>;
  /// One job of the run, on all ranks.
  void job(const Body& body) const {
    comm::run_ranks(ranks(), [&](comm::Communicator& world) { run(body, world); });
  }
  void run(const Body& body, comm::Communicator& world) const {
    io::CheckpointStore checkpoints(store(), options);
    if (takes_lease) {
      checkpoints.take_lease(world);
    }
    const int own = node_of_rank[static_cast<std::size_t>(world.rank())];
    io::LocalTier fast({.directory = node(own),
                        .node_of_rank = node_of_rank,
                        .partner = partner,
                        .keep_last = keep_last},
                       checkpoints, world);
    body(fast, checkpoints, world);
  }

  /// This rank's state of a step, whose values are the step's own (unless `salt` says others).
  template <class Save>
  auto with_state(std::int64_t step, comm::Communicator& world, const Save& save,
                  std::optional<std::uint64_t> salt = {}) const {
    const RankState state(model, cut.cut, world.rank(), ranks(), true,
                          salt.value_or(static_cast<std::uint64_t>(step)));
    return save(io::SaveRequest{.step = step,
                                .mesh = {1, ranks(), 1, 1},
                                .scalars = some_scalars(step),
                                .tensors = state.layouts,
                                .pieces = state.pieces});
  }
  std::optional<io::SaveReport> save_local_step(io::LocalTier& fast, std::int64_t step,
                                                comm::Communicator& world) const {
    return with_state(step, world,
                      [&](const io::SaveRequest& request) { return fast.save(request, world); });
  }
  void save(io::CheckpointStore& checkpoints, std::int64_t step, comm::Communicator& world) const {
    with_state(step, world,
               [&](const io::SaveRequest& request) { return checkpoints.save(request, world); });
  }

  /// What a restart of this cluster's ranks finds: the step, and elements that are not its own.
  struct Found {
    std::int64_t step = -1;
    std::int64_t wrong = 0;
    std::optional<std::int64_t> promoted;
  };
  Found restart() const {
    Found found;
    job([&](io::LocalTier& fast, io::CheckpointStore& checkpoints, comm::Communicator& world) {
      const auto promoted = fast.promote_newest(world);
      RankState state(model, cut.cut, world.rank(), ranks(), false);
      const auto checkpoint = checkpoints.restore(state.wanted, world);
      const std::int64_t step = checkpoint ? checkpoint->step() : -1;
      const std::int64_t wrong = comm::all_reduce_scalar(
          world, checkpoint ? state.wrong_elements(static_cast<std::uint64_t>(step)) : 0,
          comm::ReduceOp::sum);
      if (world.rank() == 0) {
        found = {step, wrong, promoted};
      }
    });
    return found;
  }
};

/// Of which the crash tests' processes are jobs.
inline TierCluster crash_cluster(const std::filesystem::path& root) {
  return {.root = root,
          .node_of_rank = {0, 1, 1},
          .cut = all_cuts()[1],
          .model = tiny_model(),
          .options = {.keep_last = 0, .plan = {.smallest_part_bytes = 8}}};
}

/// Of which one job takes the lease over from another.
inline TierCluster leased_cluster(const std::filesystem::path& root) {
  TierCluster cluster = crash_cluster(root);
  cluster.options.lease_beat = std::chrono::milliseconds(10);
  cluster.takes_lease = true;
  return cluster;
}

/// What a job does that takes the run over: it goes on from the newest step, and saves three more,
/// the last two of them on the node-local tier.
inline void hold(const TierCluster& cluster, io::LocalTier& fast, io::CheckpointStore& store,
                 comm::Communicator& world, std::int64_t step) {
  comm::run_on_root(world, [&] { store.confirm_lease(); });
  store.sweep_leftovers(world);
  fast.promote_newest(world);
  fast.begin(world);
  cluster.save(store, step, world);
  cluster.save_local_step(fast, step + 1, world);
  cluster.save_local_step(fast, step + 2, world);
}

}  // namespace fourfold::io_test
