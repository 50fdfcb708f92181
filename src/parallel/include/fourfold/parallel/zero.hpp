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

/// What the ranks of a data plane (dp x cp, which hold the same parameters) share out: ZeRO.
struct ZeroOptions {
  /// Ranks among which each parameter is shared out; it divides the size of the data plane, whose
  /// groups of so many neighbours are replicas of each other. 1: every rank has all of it
  int shard_ranks = 1;
  /// Gradients of matrices are reduced after every micro-batch, so that none but the share's stay
  bool reduce_each_micro_batch = false;
  /// Weights of matrices are gathered when they are needed, and none but the share's stay
  bool gather_each_unit = false;
  /// Of each matrix, that are gathered and reduced by themselves; above 1 only with
  /// gather_each_unit
  int tiles = 1;
  /// Masters, and the optimizer's state, are not in device memory
  bool offloads_state = false;
  std::int64_t bucket_bytes = 25'000'000;  ///< of a gradient collective, about; at least 4
  /// Neighbours of the data plane that sum their gradients; shard_ranks divides it. 0: all of it
  int sum_ranks = 0;
};

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

/// Elements to which the state of a segment is aligned where it is offloaded: a page of a file.
inline constexpr std::int64_t offloaded_alignment_elements = 1024;

/// The place of a rank among those that hold the same parameters: dp * CP + cp.
int data_plane_index(const comm::MeshShape& mesh, const comm::MeshCoordinate& place);

}  // namespace fourfold::parallel
