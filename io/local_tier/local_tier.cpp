// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "disk/file.hpp"
#include "disk/temporary.hpp"
#include "format/checkpoint_contents.hpp"
#include "local_tier/local_tier_impl.hpp"
#include "local_tier/node_folders.hpp"
#include "local_tier/payload_copies.hpp"
#include "local_tier/tier_id.hpp"
#include "save/checkpoint_shard_writer.hpp"
#include "save/step_commit.hpp"
#include "save/step_save.hpp"
#include "step/step_folder.hpp"

#include <fourfold/base/contract.hpp>
#include <fourfold/base/error.hpp>
#include <fourfold/base/log.hpp>
#include <fourfold/base/message.hpp>
#include <fourfold/comm/fail_together.hpp>
#include <fourfold/io/local_tier.hpp>
#include <fourfold/io/step_place.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <string_view>
#include <utility>

namespace fourfold::io {
namespace {

namespace fs = std::filesystem;

/// A node-local step is one file per rank: none waits for another's.
PlanOptions local_tier_plan(PlanOptions of_store) {
  of_store.file_of_rank.clear();
  return of_store;
}

/// The run clears the one when it begins, and lists the steps of the other.
void refuse_folder_of_checkpoints(const fs::path& directory, const fs::path& checkpoints) {
  if (lies_in(directory, checkpoints)) {
    throw UserError(
        ExitCode::config,
        format_message(
            "checkpoint.node_local_dir = \"{}\" lies in checkpoint.dir ({}), where the lasting "
            "checkpoints are; name a folder on a disk of each node, or in /dev/shm",
            directory.string(), checkpoints.string()));
  }
}

/// What the ranks of a node write, and with `partner` those of the node before.
Room room_for(const SavePlan& plan, const NodeMap& nodes, int node, bool partner) {
  std::uint64_t bytes = 0;
  std::uint64_t files = 3;
  const auto add = [&](int of) {
    for (const int rank : nodes.ranks_on(of)) {
      bytes += plan.bytes_of_rank[rank];
      ++files;
    }
  };
  add(node);
  if (partner) {
    add(nodes.previous(node));
  }
  return {bytes, files};
}

}  // namespace

LocalTier::Impl::Impl(LocalTierOptions with, const CheckpointStore& of_run,
                      comm::Communicator& world)
    : options(std::move(with)),
      store(of_run),
      plan(local_tier_plan(of_run.options().plan)),
      ranks(world.size()),
      nodes(options.node_of_rank),
      node(nodes.node_of(world.rank())),
      is_first(nodes.is_first(world.rank())),
      copies(options.partner && nodes.nodes() > 1),
      own_node(world.subgroup(nodes.ranks_on(node), "local-tier-node")),
      peers(world.subgroup(ranks_like(world.rank()), "local-tier-peers")) {
  FOURFOLD_EXPECT(std::ssize(options.node_of_rank) == ranks && options.keep_last >= 1);
}

/// The first ranks of all nodes, or those that are none.
std::vector<int> LocalTier::Impl::ranks_like(int rank) const {
  std::vector<int> alike;
  for (int other = 0; other < ranks; ++other) {
    if (nodes.is_first(other) == nodes.is_first(rank)) {
      alike.push_back(other);
    }
  }
  return alike;
}

void LocalTier::Impl::remove_home() const {
  if (is_first && !word.empty()) {
    remove_all_local_steps(home());
  }
}

LocalTier::LocalTier(LocalTierOptions options, const CheckpointStore& store,
                     comm::Communicator& world)
    : impl_(std::make_unique<Impl>(std::move(options), store, world)) {
  comm::collective_try(world, [&] {
    refuse_place_in_step(impl_->options.directory);
    refuse_folder_of_checkpoints(impl_->options.directory, store.directory());
  });
  impl_->made = require_own_folders(impl_->options.directory, impl_->nodes, world);
  std::string word;
  comm::run_on_root(world, [&] { word = read_tier_id(store.directory()); });
  impl_->word = comm::broadcast_text(world, word, 0);
  const std::int64_t is_there = kind_of(impl_->home()) == EntryKind::directory ? 1 : 0;
  if (comm::all_reduce_scalar(world, is_there, comm::ReduceOp::max) == 0 && !impl_->word.empty()) {
    log::warning(format_message(
        "{}: no node has node-local steps of the start before this one there: it made none yet, "
        "the nodes have lost them, or checkpoint.node_local_dir was another",
        impl_->home().string()));
  }
  if (impl_->is_first) {
    tell_of_other_local_steps(impl_->options.directory, impl_->word);
  }
}

LocalTier::~LocalTier() = default;

int LocalTier::nodes() const noexcept {
  return impl_->nodes.nodes();
}

std::uint64_t LocalTier::most_node_bytes(std::span<const TensorLayout> tensors) const {
  const NodeMap& nodes = impl_->nodes;
  const SavePlan plan = plan_save(tensors, impl_->ranks, impl_->plan);
  std::uint64_t most = 0;
  for (int node = 0; node < nodes.nodes(); ++node) {
    most = std::max(most, *room_for(plan, nodes, node, impl_->copies).bytes);
  }
  return most * (impl_->options.keep_last + std::uint64_t{1});
}

std::optional<std::int64_t> LocalTier::promote_newest(comm::Communicator& world,
                                                      std::optional<std::int64_t> newest) {
  return impl_->word.empty() ? std::nullopt : impl_->promote_newest(world, newest);
}

std::optional<Checkpoint> LocalTier::find_newest(comm::Communicator& world,
                                                 std::int64_t after) const {
  return impl_->word.empty() ? std::nullopt : impl_->find_newest(world, after);
}

void LocalTier::Impl::tell_of_lost(comm::Communicator& world, std::int64_t from) const {
  if (word.empty()) {
    return;
  }
  const auto steps = newer_than(world, from);
  if (!steps.empty()) {
    log::warning(format_message(
        "node-local steps of an earlier start are removed (of step {}): this one {}",
        fmt::join(steps, ", "),
        from > 0 ? format_message("goes on from step {}", from) : std::string("begins anew")));
  }
}

void LocalTier::begin(comm::Communicator& world, std::int64_t from) {
  impl_->tell_of_lost(world, from);
  if (impl_->made) {
    impl_->made->keep();
  }
  comm::collective_try(world, [&] { impl_->store.check_lease(); });
  // First they go, then the word: what is left when this is killed is still known as the run's own.
  impl_->remove_home();
  world.barrier();
  std::string word;
  comm::run_on_root(world, [&] {
    make_directories(impl_->store.directory());
    word = random_word();
    write_tier_id(impl_->store.directory(), word, [&] { impl_->store.check_lease(); });
  });
  impl_->word = comm::broadcast_text(world, word, 0);
}

/// While this process stood still another may have taken over: as long as its word is still ours it
/// may be putting our steps together, and once it has its own that is not ours to remove.
LocalTier::Impl::Removed LocalTier::Impl::what_to_remove() const {
  Removed removed = Removed::nothing;
  const auto failure = comm::capture_failure([&] {
    const bool has_our_word = read_tier_id(store.directory()) == word;
    removed = has_our_word ? Removed::nothing : Removed::steps;
    store.check_lease();
    removed = has_our_word ? Removed::steps_and_word : Removed::steps;
  });
  if (failure) {
    log::warning(failure->message);
  }
  return removed;
}

LocalTier::Impl::Removed LocalTier::Impl::leave(comm::Communicator& world) const {
  const Removed removed = world.rank() == 0 ? what_to_remove() : Removed::nothing;
  const std::int64_t removes_home = removed != Removed::nothing ? 1 : 0;
  if (comm::all_reduce_scalar(world, removes_home, comm::ReduceOp::max) != 0) {
    remove_home();
  }
  return removed;
}

/// Ends what a process began that stood still meanwhile: a folder that it made since belongs to
/// nobody once another has its own.
void LocalTier::Impl::require_lease(comm::Communicator& world) const {
  const auto failure = comm::capture_failure([&] { store.check_lease(); });
  const std::int64_t is_lost = failure ? 1 : 0;
  if (comm::all_reduce_scalar(world, is_lost, comm::ReduceOp::max) != 0) {
    leave(world);
    comm::throw_if_any_failed(world, failure);
  }
}

void LocalTier::end(comm::Communicator& world) {
  const Impl::Removed removed = impl_->leave(world);
  world.barrier();
  impl_->word.clear();
  if (removed != Impl::Removed::steps_and_word) {
    return;
  }
  if (const auto failure = comm::capture_failure(
          [&] { remove_tier_id(impl_->store.directory(), [&] { impl_->store.check_lease(); }); })) {
    log::warning(failure->message);
  }
}

/// The index, which is large where there are many ranks, comes to those alone that write it.
SealedStep LocalTier::Impl::shared_seal(const CheckpointShardWriter& share,
                                        comm::Communicator& world) const {
  SealedStep sealed;
  first_rank_writes(world, [&] { sealed = seal_step(share.job(), share.files()); });
  sealed.manifest_text = comm::broadcast_text(world, std::move(sealed.manifest_text), 0);
  if (is_first) {  // rank 0 is one of them
    sealed.index_bytes = comm::broadcast_text(*peers, std::move(sealed.index_bytes), 0);
  }
  write_together(world, [&] {
    if (const Defect defect = parse_manifest(sealed.manifest_text, sealed.manifest)) {
      throw SystemError(ExitCode::node_fault,
                        format_message("the manifest of step {} arrived damaged ({}): the memory "
                                       "of this rank or the network is faulty",
                                       share.job().step, *defect));
    }
  });
  return sealed;
}

void LocalTier::Impl::write(CheckpointShardWriter& share, comm::Communicator& world) {
  const std::int64_t step = share.job().step;
  std::optional<TemporaryStep> folder;
  write_together(world, [&] {
    if (is_first) {
      sweep_local_steps(home());
      if (kind_of(home() / step_folder_name(step)) != EntryKind::missing) {
        remove_local_steps(home(), std::span(&step, 1));
      }
      folder.emplace(home(), step, room_for(share.job().plan, nodes, node, copies));
    }
  });
  const fs::path path = comm::broadcast_text(*own_node, folder ? folder->path().string() : "", 0);
  write_together(world, [&] { share.write(path); });
  share.gather(world);
  const SealedStep sealed = shared_seal(share, world);
  if (copies) {
    agree_on_save(world, copy_to_partners(sealed.manifest, path, nodes, world));
  }
  write_together(world, [&] {
    if (folder) {
      folder->commit(sealed.manifest_text, sealed.index_bytes);
    }
  });
}

std::optional<SaveReport> LocalTier::save(const SaveRequest& request, comm::Communicator& world) {
  FOURFOLD_EXPECT(!impl_->word.empty() && !request.has_arrived);
  const auto start = std::chrono::steady_clock::now();
  CheckpointShardWriter share(impl_->store.directory(), impl_->plan, impl_->store.done_with(),
                              request, world);
  // Who has taken over may be putting together the very steps that this would remove.
  impl_->require_lease(world);
  std::optional<std::string> refused;
  try {
    impl_->write(share, world);
  } catch (const UserError& error) {
    // Whatever a disk or the memory of a node does to this level, the run can do without it; not
    // without a state that is right, or a node that is sound.
    if (error.code() == ExitCode::data_corrupt || error.code() == ExitCode::node_fault) {
      throw;
    }
    refused = error.what();
  }
  impl_->require_lease(world);
  // From here on the step is on all nodes, or on those where it is of no use.
  if (impl_->is_first) {
    const std::int64_t step = request.step;
    if (!refused) {
      remove_outdated_local_steps(impl_->home(), step, impl_->options.keep_last);
    } else if (kind_of(impl_->home() / step_folder_name(step)) != EntryKind::missing) {
      remove_local_steps(impl_->home(), std::span(&step, 1));
    }
  }
  if (refused) {
    log::warning(
        format_message("step {} is not saved on the node-local tier, and training goes on: {}",
                       request.step, *refused));
    return std::nullopt;
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  return SaveReport{impl_->home() / step_folder_name(request.step), share.job().payload_bytes(),
                    elapsed.count()};
}

void forget_local_tier(const CheckpointStore& store, comm::Communicator& world) {
  comm::run_on_root(world, [&] {
    store.check_lease();
    const std::string word = read_tier_id(store.directory());
    remove_tier_id(store.directory(), [&] { store.check_lease(); });
    if (!word.empty()) {
      log::warning(format_message(
          "an earlier start of this run had checkpoint.node_local_dir, and this one has not: its "
          "node-local steps are left where they are, and {} is gone on from what it holds itself",
          store.directory().string()));
    }
  });
}

}  // namespace fourfold::io
