// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "registered_memory.hpp"

#include <fourfold/train/rank_plan.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace fourfold::train {

device::Arena make_arena(const ResolvedRun& run, comm::Communicator& world) {
  return world.registers_memory() ? device::Arena(plan_rank(run, world.rank()).extent_bytes)
                                  : device::Arena();
}

RegisteredMemories register_memory(const device::Arena& arena,
                                   const parallel::MovedMemories& moved) {
  RegisteredMemories registered;
  for (auto each = moved.begin(); each != moved.end(); ++each) {
    if (std::find(moved.begin(), each, *each) != each) {
      continue;
    }
    arena.for_each([&](device::MemoryUse use, void* data, std::size_t bytes) {
      if (use != each->use) {
        return;
      }
      if (auto memory = each->by->register_memory(data, bytes)) {
        registered.push_back(std::move(memory));
      }
    });
  }
  return registered;
}

}  // namespace fourfold::train
