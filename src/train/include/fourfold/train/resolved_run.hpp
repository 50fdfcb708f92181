// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// How a run lies on a mesh, worked out (and refused, if need be) before any memory is taken.
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/comm/mesh.hpp>
#include <fourfold/data/sample_order.hpp>
#include <fourfold/parallel/context_parallel.hpp>
#include <fourfold/parallel/gradient_compression.hpp>
#include <fourfold/parallel/tensor_parallel.hpp>
#include <fourfold/parallel/zero.hpp>
#include <fourfold/runfile/run_config.hpp>
#include <fourfold/schedule/split_layers.hpp>
#include <fourfold/train/update_rule.hpp>

#include <cstdint>
#include <string>

namespace fourfold::train {

/// The text of the CSV file that mesh.schedule names; empty for a schedule with a name.
/// @throws UserError (config) with its place in the run file, when there is neither such a schedule
///   nor such a file
std::string schedule_file_text(const runfile::EffectiveConfig& effective);

/// A run on a mesh: all that a run file and a number of ranks decide. A value.
struct ResolvedRun {
  runfile::RunConfig config;  ///< as it is written: mesh.dp may be "auto"
  comm::MeshShape mesh;       ///< and is filled in here
  data::BatchPlan batches;    ///< which samples each rank takes
  schedule::StageLayout layout;
  parallel::TensorParallelOptions tensor;
  parallel::ContextParallelOptions context;
  parallel::ZeroOptions zero;  ///< of the data plane; of a replica's if they train locally
  parallel::CompressionOptions compression;
  UpdateRules rules;  ///< of the optimizer
  /// The ranks of the dp axis train by themselves for rounds of steps.
  bool trains_locally = false;
  /// Whether the outer optimizer keeps a velocity.
  bool keeps_outer_momentum() const noexcept {
    return trains_locally && config.optim.outer == runfile::OuterOptimizerKind::nesterov;
  }
};

/// Resolves a run, once; whoever needs to know something of it takes the result. A function of the
/// run file and of the CSV file that mesh.schedule may name, which it reads.
/// @throws UserError (config) with its place in the run file, naming the key and the nearest value
///   that works: a mesh that does not fit the ranks, a batch that it does not divide, heads,
///   vocabulary or sequence that cannot be cut, fewer layers than stages, fewer micro-batches than
///   the schedule needs, a schedule that cannot run or be read, a mesh.zero_group that does not
///   divide the data plane
ResolvedRun resolve_run(const runfile::EffectiveConfig& effective, std::int64_t ranks);
/// The same on all ranks of the world; rank 0 reads the schedule's file for all. Collective.
/// @pre all have the same run file
ResolvedRun resolve_run(const runfile::EffectiveConfig& effective, comm::Communicator& world);
/// The run on another mesh than its own.
ResolvedRun resolve_run(runfile::EffectiveConfig effective, const comm::MeshShape& mesh);

/// ResolvedRun::context of a run file on a mesh that can cut its sequences.
parallel::ContextParallelOptions context_options(const runfile::RunConfig& config,
                                                 const comm::MeshShape& mesh);

/// The run on another mesh that its state is to be cut for. What only training asks for (a batch
/// that the mesh divides, micro-batches enough for the schedule) is not asked.
/// @param saved  the run file of the run that saved the state
/// @param mesh   "tp=2,pp=1,dp=8,zero=3": runfile::mesh_overrides(), keys of [mesh] alone; those
///               that are not named (zero, zero_group, schedule, chunks, ...) as in `saved`
/// @throws UserError (config) naming what is wrong with `mesh`, or why the model cannot be cut so
ResolvedRun resolve_target(const runfile::RunConfig& saved, const std::string& mesh);

}  // namespace fourfold::train
