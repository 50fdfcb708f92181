// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/device/arena.hpp>
#include <fourfold/parallel/moved_memory.hpp>

#include <memory>
#include <vector>

namespace fourfold::train {

using RegisteredMemories = std::vector<std::unique_ptr<comm::RegisteredMemory>>;

/// Registers the arena's memory with the communicators that move it, all of a use where they move
/// some. The ranks of a communicator do so alike, in one order; nobody waits for another.
/// @return to be given up before the arena and before what owns the communicators
RegisteredMemories register_memory(const device::Arena& arena,
                                   const parallel::MovedMemories& moved);

}  // namespace fourfold::train
