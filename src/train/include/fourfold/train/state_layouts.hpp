// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// How the state of a run lies on the ranks of a mesh, without the run: what its checkpoints are
/// cut by. Pure functions, the same on all ranks.
#pragma once

#include <fourfold/comm/mesh.hpp>
#include <fourfold/io/checkpoint_plan.hpp>
#include <fourfold/model/architecture.hpp>
#include <fourfold/parallel/zero.hpp>
#include <fourfold/runfile/run_config.hpp>
#include <fourfold/schedule/stage_layout.hpp>

#include <span>
#include <string>
#include <vector>

namespace fourfold::train {

/// Tensors of every parameter in each of `states` (error_feedback: of the matrices), f32: each on
/// the stage of its unit, as tensor parallelism cuts it, shared out among the data plane as ZeRO
/// does; error feedback is shared out with ZeRO and without.
std::vector<io::TensorLayout> state_layouts(const model::Architecture& config,
                                            const schedule::StageLayout& stages,
                                            const comm::MeshShape& mesh,
                                            const parallel::ZeroOptions& zero,
                                            std::span<const io::TensorState> states);

/// A mesh for a state to be cut for, with what else in [mesh] decides where tensors lie.
struct TargetMesh {
  comm::MeshShape shape;
  std::vector<io::TensorLayout> layouts;
};

/// @param saved    the run file of the run that saved the state
/// @param mesh     "tp=2,pp=1,dp=8,zero=3": axes that are not named are 1, other keys of [mesh]
///                 (zero, zero_group, schedule, chunks, stage_layers, ...) as in `saved`
/// @param states   that there are
/// @throws UserError (config) naming what is wrong with `mesh`, or why the model cannot be cut so
TargetMesh target_mesh(const runfile::RunConfig& saved, const std::string& mesh,
                       std::span<const io::TensorState> states);

}  // namespace fourfold::train
