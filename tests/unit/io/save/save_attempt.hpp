// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "position_coded_state.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/comm/thread_group.hpp>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace fourfold::io_test {

struct Outcome {
  std::vector<int> codes;  ///< 0: saved
  std::string message;
};

/// Saves as `ranks` ranks that are threads; `tamper` may change a rank's state before.
inline Outcome try_save(const std::filesystem::path& directory, int ranks, std::int64_t step,
                        const std::function<void(int rank, RankState&)>& tamper = {},
                        int keep_last = 0, const io::CheckpointScalars* scalars = nullptr) {
  Outcome outcome;
  std::mutex mutex;
  comm::run_ranks(ranks, [&](comm::Communicator& world) {
    RankState state(small_model(), all_cuts()[0].cut, world.rank(), ranks, true);
    if (tamper) {
      tamper(world.rank(), state);
    }
    io::CheckpointStore store(directory,
                              {.keep_last = keep_last, .plan = {.smallest_part_bytes = 64}});
    int code = 0;
    std::string message;
    try {
      store.save({.step = step,
                  .mesh = {1, ranks, 1, 1},
                  .scalars = scalars != nullptr ? *scalars : some_scalars(step),
                  .tensors = state.layouts,
                  .pieces = state.pieces},
                 world);
    } catch (const Error& error) {
      code = static_cast<int>(error.code());
      message = error.what();
    }
    const std::scoped_lock lock(mutex);
    outcome.codes.push_back(code);
    outcome.message = message;
  });
  return outcome;
}

inline std::vector<std::string> names(const std::filesystem::path& directory) {
  std::vector<std::string> result;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    result.push_back(entry.path().filename().string());
  }
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace fourfold::io_test
