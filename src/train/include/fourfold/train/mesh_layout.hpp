// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// How a run lies on a mesh: everything that a run file and a number of ranks decide, worked out
/// (and refused, if need be) before any memory is taken.
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/comm/mesh.hpp>
#include <fourfold/parallel/context_parallel.hpp>
#include <fourfold/parallel/gradient_compression.hpp>
#include <fourfold/parallel/tensor_parallel.hpp>
#include <fourfold/parallel/zero.hpp>
#include <fourfold/runfile/run_config.hpp>
#include <fourfold/schedule/stage_layout.hpp>

#include <string>

namespace fourfold::train {

/// The mesh of a run on so many ranks, with mesh.dp = "auto" filled in.
/// @throws UserError (config) with its place in the run file, as comm::resolve_mesh
comm::MeshShape mesh_of(const runfile::EffectiveConfig& effective, std::int64_t ranks);

/// The text of the CSV file that mesh.schedule names; empty for a schedule with a name.
/// @throws UserError (config) when there is neither such a schedule nor such a file
std::string schedule_file_text(const runfile::RunConfig& config);
/// The same, read by rank 0 for all. Collective.
std::string schedule_file_text(const runfile::RunConfig& config, comm::Communicator& world);

/// Cuts the model among the pp axis, and checks what is cut along the others. A pure function.
/// @param schedule_csv  schedule_file_text()
/// @throws UserError (config) naming the key and the nearest value that works: heads, vocabulary or
///   sequence that cannot be cut, fewer layers than stages, fewer micro-batches than the schedule
///   needs, a schedule that cannot run
schedule::StageLayout lay_out(const runfile::RunConfig& config, const comm::MeshShape& mesh,
                              const std::string& schedule_csv);

/// What the seams need to know of a run.
parallel::TensorParallelOptions tensor_options(const runfile::RunConfig& config,
                                               const comm::MeshShape& mesh);
parallel::ContextParallelOptions context_options(const runfile::RunConfig& config,
                                                 const comm::MeshShape& mesh);

/// Whether the ranks of the dp axis train by themselves for rounds of steps.
bool trains_locally(const runfile::RunConfig& config, const comm::MeshShape& mesh) noexcept;

/// What the data plane shares out, of a replica if they train locally.
/// @throws UserError (config) for a mesh.zero_group that does not divide it, naming those that do
parallel::ZeroOptions zero_options(const runfile::RunConfig& config, const comm::MeshShape& mesh);

/// How gradients travel over it.
parallel::CompressionOptions compression_options(const runfile::RunConfig& config);

}  // namespace fourfold::train
