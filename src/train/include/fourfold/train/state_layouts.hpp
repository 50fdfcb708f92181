// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// How the state of a run lies on the ranks of a mesh, without the run: what its checkpoints are
/// cut by. Pure functions, the same on all ranks.
#pragma once

#include <fourfold/comm/mesh.hpp>
#include <fourfold/io/checkpoint_plan.hpp>
#include <fourfold/runfile/run_config.hpp>
#include <fourfold/train/resolved_run.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace fourfold::train {

/// What compression has left out of a matrix's gradients.
inline constexpr io::TensorState error_feedback{"error_feedback"};
/// The velocity of the outer optimizer.
inline constexpr io::TensorState outer_momentum{"outer_momentum"};

/// The tensors of a run's checkpoints: of every parameter the master and what the rule of its group
/// keeps; its outer_momentum where replicas keep one; of matrices whose gradients travel
/// compressed, error_feedback. By parameter in table order.
std::vector<io::TensorId> saved_tensors(const ResolvedRun& run);

/// How such tensors lie on the ranks of the run's mesh, f32: each on the stage of its unit, as
/// tensor parallelism cuts it, shared out among the data plane as ZeRO does; error feedback is
/// shared out with ZeRO and without.
/// @param tensors  those of parameters that the model has not are left out
std::vector<io::TensorLayout> state_layouts(const ResolvedRun& run,
                                            std::span<const io::TensorId> tensors);

/// What each rank writes of a checkpoint.
std::vector<std::int64_t> saved_bytes(const ResolvedRun& run);

}  // namespace fourfold::train
