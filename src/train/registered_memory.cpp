// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "registered_memory.hpp"

#include <array>
#include <cstddef>
#include <utility>

namespace fourfold::train {

using device::MemoryUse;

RegisteredMemories register_memory(const device::Arena& arena, const comm::Mesh& mesh) {
  RegisteredMemories registered;
  const std::array<comm::Communicator*, 4> movers{&mesh.data_plane(), &mesh.axis(comm::Axis::dp),
                                                  &mesh.axis(comm::Axis::cp),
                                                  &mesh.axis(comm::Axis::tp)};
  arena.for_each([&](MemoryUse use, void* data, std::size_t bytes) {
    if (use != MemoryUse::weights && use != MemoryUse::gradients &&
        use != MemoryUse::communication) {
      return;
    }
    for (comm::Communicator* const mover : movers) {
      if (auto memory = mover->register_memory(data, bytes)) {
        registered.push_back(std::move(memory));
      }
    }
  });
  return registered;
}

}  // namespace fourfold::train
