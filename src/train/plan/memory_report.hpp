// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What a rank was to take of memory, and what it took.
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/comm/mesh.hpp>
#include <fourfold/device/arena.hpp>
#include <fourfold/device/process_memory.hpp>
#include <fourfold/parallel/tensor_parallel.hpp>
#include <fourfold/telemetry/metrics.hpp>
#include <fourfold/train/resolved_run.hpp>
#include <fourfold/train/state_tier.hpp>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace fourfold::train {

/// "1234.5", in MiB.
std::string mib_text(std::size_t bytes);

/// "weights 1.0, gradients 2.0, ...", in MiB.
std::string memory_by_use_text(const device::Arena& arena);

/// library_bytes() of this rank on its device.
std::size_t own_library_bytes(const ResolvedRun& run, const comm::Mesh& mesh);

/// Of the rank that took most of all: of its device's memory, where devices have their own, else of
/// the host's, where offloaded state and copies lie too. Collective; each rank is a process of its
/// own.
/// @param staging_bytes  of the copies that are written in the background
/// @param library_bytes  own_library_bytes()
telemetry::MemoryRecord memory_record(const device::Arena& arena, const StateTier& tier,
                                      std::size_t staging_bytes, std::size_t library_bytes,
                                      const device::MemoryWatch& host,
                                      const device::DeviceMemoryWatch& device, comm::Mesh& mesh);

/// "memory of rank 3: 755.3 MiB planned, at most 757.1 MiB taken (+0.2 %)"; of a device
/// "..., 61.2 of 79.6 GiB of the GPU in use, 18.4 free"
/// @param beside_bytes  what was counted for the process beside its tensors: named in the brackets,
///   since what was taken has most of that in it; 0: nothing is
std::string memory_text(const telemetry::MemoryRecord& record, std::size_t beside_bytes = 0);

using RegisteredMemories = std::vector<std::unique_ptr<comm::RegisteredMemory>>;

/// The arena of this rank of a run, with nothing taken yet. Where communicators register memory it
/// is one block for each use, as large as the run will take, of pages that others can be let into;
/// else each tensor is memory of its own, and who writes beyond one is found. Collective.
device::Arena make_arena(const ResolvedRun& run, comm::Communicator& world);

/// Registers the arena's memory with the communicators that move it, all of a use where they move
/// some. The ranks of a communicator do so alike, in one order; nobody waits for another.
/// @return to be given up before the arena and before what owns the communicators
RegisteredMemories register_memory(const device::Arena& arena,
                                   const parallel::MovedMemories& moved);

}  // namespace fourfold::train
