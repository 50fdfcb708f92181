// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/io/checkpoint_store.hpp>
#include <fourfold/io/local_tier.hpp>
#include <fourfold/runfile/run_config.hpp>
#include <fourfold/train/data_facts.hpp>

#include <functional>
#include <optional>
#include <span>
#include <string>

namespace fourfold::train {

struct ResumeRequest {
  const runfile::RunConfig& config;
  const DataFacts& data;
  io::CheckpointStore& store;  ///< of checkpoint.dir
  std::span<const io::WantedBox> wanted;
  std::span<const io::TensorLayout> layouts;     ///< of `wanted`
  std::span<const std::string> allowed_changes;  ///< keys that may differ from the checkpoint's
  /// Where the run goes on from its own newest step, one of these may be it, and comes into the
  /// store first.
  io::LocalTier* local_tier = nullptr;
  /// Called on all ranks before a node-local step becomes a checkpoint: throws, on all of them,
  /// where the run could make no step from there.
  std::function<void(const io::Checkpoint&)> look = {};
};

/// What a run goes on from, or begins with.
struct Resumed {
  io::Checkpoint checkpoint;
  bool weights_only = false;
};

/// Chooses the checkpoint that checkpoint.resume means, checks that going on from it is the same
/// run, and loads it; the newest one may be damaged, then each older one is checked anew. With a
/// path: a chain of jobs that has gone on from it goes on from its own newest checkpoint, or
/// node-local step. With checkpoint.weights_only a run that begins takes the masters alone, and
/// nothing is compared but the model. Collective.
/// @return nothing when the run starts anew
/// @throws UserError: config when the run file or the training data differ in what they mean, when
///   "never" meets checkpoints, or when later steps are in the way; data_corrupt when nothing
///   intact is left
std::optional<Resumed> resume(const ResumeRequest& request, comm::Communicator& world);

/// Says what of this run's state begins at zero, and what of the checkpoint's is left behind, after
/// keys about it have changed.
/// @param layouts  of this run's state
void tell_other_state(const io::Checkpoint& checkpoint, std::span<const io::TensorLayout> layouts);

}  // namespace fourfold::train
