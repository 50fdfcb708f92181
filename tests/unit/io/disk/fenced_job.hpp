// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// What a job that stands still and the one that takes over from it have in common.
#pragma once

#include "save/position_coded_state.hpp"

#include <fourfold/io/checkpoint_store.hpp>
#include <fourfold/io/directory_lease.hpp>

#include <chrono>
#include <cstdint>

namespace fourfold::io_test {

inline io::StoreOptions fenced_options(int keep_last) {
  return {.keep_last = keep_last,
          .plan = {.smallest_part_bytes = 64},
          .lease_beat = std::chrono::milliseconds(10)};
}

/// Of a directory that is not one of checkpoints.
inline io::LeaseOptions fenced_lease() {
  return {.beat = std::chrono::milliseconds(10), .silence = std::chrono::milliseconds(60)};
}

/// As one of two ranks. Values are the step's own.
inline void save_fenced(io::CheckpointStore& store, std::int64_t step, comm::Communicator& world) {
  RankState state(small_model(), all_cuts()[0].cut, world.rank(), 2, true,
                  static_cast<std::uint64_t>(step));
  store.save({.step = step,
              .mesh = {1, 2, 1, 1},
              .scalars = some_scalars(step),
              .tensors = state.layouts,
              .pieces = state.pieces},
             world);
}

}  // namespace fourfold::io_test
