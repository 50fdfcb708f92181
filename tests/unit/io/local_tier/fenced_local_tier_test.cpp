// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// As fenced_lease_test, of a run with a node-local tier: who stood still at any call changes
/// neither the store nor what lies on the nodes of who has taken the run over.
#include "captured_log.hpp"
#include "save/crash_job.hpp"
#include "save/stopping_job.hpp"
#include "tier_folders.hpp"

#include <catch2/catch_test_macros.hpp>

#include <map>
#include <string>

using namespace fourfold;
using namespace fourfold::io_test;
namespace fs = std::filesystem;

namespace {

/// All but leases, and what starts look with for folders that nodes share.
std::map<std::string, std::string> found_in(const fs::path& root) {
  auto files = harness::files_below(root);
  std::erase_if(files, [](const auto& file) {
    return file.first.find(".lease") != std::string::npos ||
           file.first.find(".probe-") != std::string::npos;
  });
  return files;
}

/// Steps 5 and 10 in the store and on the node-local tier, of a start that was killed.
void fill(const fs::path& root) {
  const TierCluster cluster = crash_cluster(root);
  cluster.job([&](io::LocalTier& fast, io::CheckpointStore& store, comm::Communicator& world) {
    fast.begin(world);
    cluster.save(store, 5, world);
    cluster.save_local_step(fast, 10, world);
  });
}

}  // namespace

TEST_CASE(
    "who stood still at any call of a node-local tier changes nothing of who has taken over") {
  Attempts attempts;
  fill(attempts.original());
  std::map<int, int> codes;
  long at = 1;
  for (bool has_ended = false; !has_ended; ++at) {
    CAPTURE(at);
    const fs::path work = attempts.fresh();
    StoppingJob job({crash_program("local_tier"), work.string(), "hold"}, work, at);
    if (!job.stands_still()) {
      has_ended = true;
      continue;
    }
    const harness::CapturedLog log;
    const TierCluster second = leased_cluster(work);
    second.job([&](io::LocalTier& fast, io::CheckpointStore& store, comm::Communicator& world) {
      hold(second, fast, store, world, 40);
      world.barrier();
      if (world.rank() == 0) {
        const auto before = found_in(work);
        const int code = job.go_on();
        ++codes[code];
        if (found_in(work) != before) {
          throw std::runtime_error("something has changed, the job ended with " +
                                   std::to_string(code));
        }
        store.check_lease();
      }
    });
    const auto found = crash_cluster(work).restart();
    REQUIRE(found.step == 42);
    REQUIRE(found.wrong == 0);
  }
  CHECK(at > 150);
  CHECK(codes[73] + codes[93] > 80);  // it has learnt that it was taken over, or fails in a file
  for (const auto& [code, times] : codes) {
    CAPTURE(code, times);
    // 78: it had no lease yet; 0: all it had to do was done.
    CHECK((code == 73 || code == 93 || code == 78 || code == 0));
  }
}
