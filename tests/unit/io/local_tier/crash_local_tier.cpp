// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// crash_local_tier DIRECTORY begin|STEP|promote|go-on|hold: a job of a run of three ranks on two
/// nodes below DIRECTORY: begins its node-local tier, saves one node-local step, promotes the
/// newest, or does all that a job does that goes on; "hold" does so with the lease, saves
/// node-local steps and ends. Ends with the exit code of what went wrong. crash_local_tier_test
/// runs it under the shim.
#include "tier_cluster.hpp"

#include <fourfold/base/error.hpp>

#include <cstdio>
#include <cstdlib>
#include <string_view>

int main(int argc, char** argv) {
  if (argc != 3) {
    return 64;
  }
  const std::string_view verb = argv[2];
  const fourfold::io_test::TierCluster cluster = verb == "hold"
                                                     ? fourfold::io_test::leased_cluster(argv[1])
                                                     : fourfold::io_test::crash_cluster(argv[1]);
  try {
    cluster.job([&](fourfold::io::LocalTier& fast, fourfold::io::CheckpointStore& store,
                    fourfold::comm::Communicator& world) {
      if (verb == "begin") {
        fast.begin(world);
        cluster.save(store, 5, world);
      } else if (verb == "promote") {
        fast.promote_newest(world);
      } else if (verb == "go-on") {
        store.sweep_leftovers(world);
        fast.promote_newest(world);
        fast.begin(world);
      } else if (verb == "hold") {
        hold(cluster, fast, store, world, 20);
        fast.end(world);
      } else {
        cluster.save_local_step(fast, std::atoll(argv[2]), world);
      }
    });
  } catch (const fourfold::Error& error) {
    std::fputs(error.what(), stderr);
    return static_cast<int>(error.code());
  }
  return 0;
}
