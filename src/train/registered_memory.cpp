// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "registered_memory.hpp"

#include <fourfold/train/mesh_layout.hpp>
#include <fourfold/train/rank_plan.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace fourfold::train {

device::Arena make_arena(const runfile::RunConfig& config, comm::Mesh& mesh) {
  if (!mesh.world().registers_memory()) {
    return device::Arena();
  }
  const schedule::StageLayout layout =
      lay_out(config, mesh.shape(), schedule_file_text(config, mesh.world()));
  return device::Arena(plan_rank(config, layout, mesh.shape(), mesh.world().rank()).extent_bytes);
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
