// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/mesh.hpp>
#include <fourfold/device/arena.hpp>

#include <memory>
#include <vector>

namespace fourfold::train {

using RegisteredMemories = std::vector<std::unique_ptr<comm::RegisteredMemory>>;

/// Registers what a step's collectives move (weights, gradients, buffers of communication) with
/// each communicator of the mesh that moves it. Collective: all ranks have the same tensors in the
/// same order. @return to be given up before the arena and the mesh
RegisteredMemories register_memory(const device::Arena& arena, const comm::Mesh& mesh);

}  // namespace fourfold::train
