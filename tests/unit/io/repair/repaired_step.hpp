// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "save/position_coded_state.hpp"
#include "scratch_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/comm/thread_group.hpp>
#include <fourfold/io/index_repair.hpp>

#include <bit>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace fourfold::io_test {

/// What a save to be repaired later is made with.
struct RepairCase {
  std::size_t cut = 1;  ///< of all_cuts()
  int ranks = 3;
  std::vector<int> file_of_rank = {};
  std::int64_t step = 10;
  CodedValues values = {};
};

/// Texts that are no UTF-8, hold zero bytes, or nothing.
inline io::CheckpointScalars awkward_scalars(std::int64_t step) {
  io::CheckpointScalars scalars = some_scalars(step);
  scalars.texts["bytes"] = std::string("\xff\xfe\0\x80 \n\"", 7);
  scalars.texts["long"] = std::string(70000, 'x');  // more than an attribute could hold
  scalars.reals["nan"] = std::bit_cast<double>(std::uint64_t{0x7ff8dead00000001});
  scalars.integers["least"] = INT64_MIN;
  return scalars;
}

inline void save_case(const std::filesystem::path& directory, const RepairCase& saved) {
  comm::run_ranks(saved.ranks, [&](comm::Communicator& world) {
    const RankState state(saved.values.model, all_cuts()[saved.cut].cut, world.rank(), saved.ranks,
                          true, saved.values.salt);
    io::CheckpointStore store(
        directory,
        {.keep_last = 0, .plan = {.smallest_part_bytes = 64, .file_of_rank = saved.file_of_rank}});
    store.save({.step = saved.step,
                .mesh = {1, saved.ranks, 1, 1},
                .scalars = awkward_scalars(saved.step),
                .tensors = state.layouts,
                .pieces = state.pieces},
               world);
  });
}

struct Refusal {
  int code = 0;  ///< 0: repaired
  std::string message;
};

inline Refusal try_repair(const std::filesystem::path& folder,
                          const io::RepairOptions& options = {}) {
  try {
    io::repair_index(folder, options);
  } catch (const UserError& error) {
    return {static_cast<int>(error.code()), error.what()};
  }
  return {};
}

}  // namespace fourfold::io_test
