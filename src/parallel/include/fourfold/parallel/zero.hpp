// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/mesh.hpp>
#include <fourfold/model/architecture.hpp>
#include <fourfold/model/parameters.hpp>
#include <fourfold/parallel/parameter_shard.hpp>
#include <fourfold/parallel/shard_layout.hpp>

#include <cstdint>

namespace fourfold::parallel {

/// What a rank then has memory for beside its share.
model::ParameterMemory parameter_memory(const ZeroOptions& zero, const model::Architecture& config);

/// How `ranks` ranks with these parameters would share them out.
ShardLayout make_layout(const model::Parameters& parameters, int ranks);

/// The rank's part.
/// @param layout  of zero.shard_ranks
/// @param index   the rank's place in the data plane
/// @param state   where masters lie when zero.offloads_state
ParameterShard make_share(const model::Parameters& parameters, const ShardLayout& layout, int index,
                          const ZeroOptions& zero, device::Arena& arena, device::Arena& state);

/// The place of a rank among those that hold the same parameters: dp * CP + cp.
int data_plane_index(const comm::MeshShape& mesh, const comm::MeshCoordinate& place);

}  // namespace fourfold::parallel
