// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// crash_saver DIRECTORY STEP RANKS FILES: saves one step, whose values are its own, and keeps the
/// newest one only. Ends with the exit code of what went wrong. crash_test runs it under the shim.
#include "position_coded_state.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/comm/thread_group.hpp>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  if (argc != 5) {
    return 64;
  }
  const int ranks = std::atoi(argv[3]);
  try {
    fourfold::comm::run_ranks(ranks, [&](fourfold::comm::Communicator& world) {
      using namespace fourfold::io_test;
      const long long step = std::atoll(argv[2]);
      save_as(argv[1], all_cuts()[0], ranks, step, world,
              {.keep_last = 1,
               .plan = {.smallest_part_bytes = 64,
                        .file_of_rank = fourfold::io::shared_files(ranks, std::atoi(argv[4]))}},
              {.salt = static_cast<std::uint64_t>(step)});
    });
  } catch (const fourfold::Error& error) {
    std::fputs(error.what(), stderr);
    return static_cast<int>(error.code());
  }
  return 0;
}
