// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What one rank of a run will be and need, without the run: no ranks, no memory, no data. Made by
/// the code that sets a real rank up, over a communicator that moves nothing and an arena that only
/// counts, so it cannot differ from it.
#pragma once

#include <fourfold/base/box.hpp>
#include <fourfold/base/shape.hpp>
#include <fourfold/comm/mesh.hpp>
#include <fourfold/device/arena.hpp>
#include <fourfold/io/checkpoint_plan.hpp>
#include <fourfold/model/architecture.hpp>
#include <fourfold/model/parameters.hpp>
#include <fourfold/train/resolved_run.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fourfold::train {

struct RankPlan {
  comm::MeshCoordinate coordinate;
  /// Ranks of the world on this rank's line of each axis, in the order of positions.
  std::array<std::vector<std::int64_t>, comm::axis_count> lines;
  std::vector<model::UnitRange> chunks;   ///< of the model
  std::array<Range, 2> tokens;            ///< of each sequence: parallel::context_chunks
  std::vector<model::Parameter> tensors;  ///< in the order of the model, without memory
  device::MemoryBytes memory_bytes{};     ///< but for the kernels' scratch
  device::MemoryBytes extent_bytes{};     ///< the same as one block for each use
  std::size_t library_bytes = 0;          ///< library_bytes()
  std::size_t host_bytes = 0;     ///< offloaded state and activations in host memory, buffers
  std::size_t process_bytes = 0;  ///< process_bytes(), in host memory
  std::size_t image_bytes = 0;    ///< pinned, for the state of a device in saves and loads
  std::size_t file_bytes = 0;     ///< offloaded state on disk

  /// Of the device, or of the host that is one.
  std::size_t device_bytes() const noexcept;
};

/// Of H100 and H200: what is planned for where nobody says.
inline constexpr int usual_compute_capability = 90;

/// What cuBLASLt and cuDNN take on a device of that compute capability (90 for 9.0), beside what is
/// in the arena, of a rank at that position of the cp axis: kernels::library_memory_bytes() of its
/// attention. 0 in builds for hosts.
std::size_t library_bytes(const ResolvedRun& run, int cp, int compute_capability);

/// What the process of a rank takes of its host's memory beside its tensors: 56 MiB for generated
/// code and scratch of matrix products, HDF5, heap and stacks, and 1 MiB for each rank of its node,
/// for MPI's buffers and the pages that they share. As measured on 1 to 16 ranks of one node
/// (docs/memory.md), rounded up; it hardly depends on the model. 0 in builds for GPUs, where CUDA
/// and NCCL take more: not measured.
/// @param ranks  of the run. How many of them share a node is not asked: up to 128 are taken for
///   neighbours, as many as nodes have
std::size_t process_bytes(std::int64_t ranks);

/// @pre 0 <= rank < run.mesh.ranks()
RankPlan plan_rank(const ResolvedRun& run, std::int64_t rank,
                   int compute_capability = usual_compute_capability);
/// The first rank of each stage of the pipeline; none needs more than it.
std::vector<RankPlan> plan_stages(const ResolvedRun& run,
                                  int compute_capability = usual_compute_capability);

/// What the one of these ranks that needs most takes of its node's memory, copies of checkpoints
/// that are written in the background included. In builds for GPUs a device's memory is not of it.
std::size_t node_bytes(const ResolvedRun& run, std::span<const RankPlan> ranks);

}  // namespace fourfold::train
