// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fourfold/comm/communicator.hpp>
#include <fourfold/device/arena.hpp>

#include <initializer_list>
#include <vector>

namespace fourfold::parallel {

/// Memory of a run's arena that a communicator reads or writes in its steps. Numbers of their own,
/// such as the loss, are too small to be among it.
struct MovedMemory {
  comm::Communicator* by = nullptr;  ///< borrowed
  device::MemoryUse use = device::MemoryUse::communication;
  friend bool operator==(const MovedMemory&, const MovedMemory&) = default;
};

/// In the same order on all ranks of each communicator. What is there twice is meant once, if it is
/// one object that moves it: one that passes calls on to another counts for itself, and registers
/// with the other again what that has already.
using MovedMemories = std::vector<MovedMemory>;

inline void add_moved(MovedMemories& moved, comm::Communicator& by,
                      std::initializer_list<device::MemoryUse> uses) {
  for (const device::MemoryUse use : uses) {
    moved.push_back({&by, use});
  }
}

}  // namespace fourfold::parallel
