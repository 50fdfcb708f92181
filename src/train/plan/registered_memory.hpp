// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/device/arena.hpp>
#include <fourfold/parallel/moved_memory.hpp>
#include <fourfold/train/resolved_run.hpp>

#include <memory>
#include <vector>

namespace fourfold::train {

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
