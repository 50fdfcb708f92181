// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// crash_holder DIRECTORY: a job of two ranks that takes the lease of DIRECTORY, sweeps it, forgets
/// the fast level of an earlier start, and saves step 20 as the only one that is kept: all that
/// changes a directory of checkpoints. Ends with the exit code of what went wrong.
/// fenced_lease_test runs it under the shim.
#include "fenced_job.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/comm/thread_group.hpp>
#include <fourfold/io/fast_level.hpp>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 2) {
    return 64;
  }
  try {
    fourfold::comm::run_ranks(2, [&](fourfold::comm::Communicator& world) {
      using namespace fourfold::io_test;
      fourfold::io::CheckpointStore store(argv[1], fenced_options(1));
      store.take_lease(world);
      store.settle_lease();
      store.sweep_leftovers(world);
      fourfold::io::forget_fast_level(store, world);
      save_fenced(store, 20, world);
    });
  } catch (const fourfold::Error& error) {
    std::fputs(error.what(), stderr);
    return static_cast<int>(error.code());
  }
  return 0;
}
