// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// crash_resharder FROM DIRECTORY PROCESSES: cuts the checkpoint in FROM anew for three ranks with
/// two files, as `fourfold ckpt reshard` does, by processes that are threads. Ends with the exit
/// code of what went wrong. crash_reshard_test runs it under the shim.
#include "save/position_coded_state.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/comm/thread_group.hpp>
#include <fourfold/io/checkpoint_find.hpp>
#include <fourfold/io/streamed_save.hpp>

#include <cstdio>
#include <cstdlib>

namespace {

constexpr int ranks = 3;
constexpr int files = 2;
/// Small, so that tensors come in several parts and the journal is written several times.
constexpr std::int64_t part_bytes = 16;

void reshard(const char* from, const char* directory, fourfold::comm::Communicator& world) {
  using namespace fourfold;
  using namespace fourfold::io_test;
  const io::Checkpoint checkpoint = io::find_checkpoint(from, world);
  const RankState state(tiny_model(), all_cuts()[2].cut, 0, ranks, false);
  io::CheckpointSource source(checkpoint);
  io::PlanOptions plan{.smallest_part_bytes = 8};
  plan.file_of_rank = io::shared_files(ranks, files);
  const io::StreamedSave save{.step = checkpoint.step(),
                              .mesh = {1, ranks, 1, 1},
                              .scalars = checkpoint.scalars(),
                              .tensors = state.layouts,
                              .plan = plan,
                              .identity = checkpoint.identity(),
                              .part_bytes = part_bytes};
  io::save_streamed(directory, save, source, world);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    return 64;
  }
  try {
    fourfold::comm::run_ranks(std::atoi(argv[3]), [&](fourfold::comm::Communicator& world) {
      reshard(argv[1], argv[2], world);
    });
  } catch (const fourfold::Error& error) {
    std::fputs(error.what(), stderr);
    return static_cast<int>(error.code());
  }
  return 0;
}
