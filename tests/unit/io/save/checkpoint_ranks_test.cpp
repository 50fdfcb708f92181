// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "local_tier/tier_cluster.hpp"
#include "position_coded_state.hpp"
#include "shared_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/harness/on_ranks.hpp>

#include <catch2/catch_test_macros.hpp>

using namespace fourfold;
using namespace fourfold::io_test;
using harness::Findings;

TEST_CASE("ranks of any transport save together and load what others saved") {
  harness::on_ranks([](comm::Communicator& world, Findings& findings) {
    const SharedFolder folder(world);
    const std::vector<NamedCut> cuts = all_cuts();
    for (std::size_t from = 0; from < cuts.size(); ++from) {
      const NamedCut& to = cuts[(from + 1) % cuts.size()];
      const std::int64_t step = static_cast<std::int64_t>(from) + 1;
      const io::SaveReport report = save_as(folder.path(), cuts[from], world.size(), step, world);
      RankState state(small_model(), to.cut, world.rank(), world.size(), false);
      io::CheckpointStore store(folder.path(), {.share_reads_from = 2});
      const auto checkpoint = store.restore(state.wanted, world, {}, state.layouts);
      findings.check(checkpoint && checkpoint->step() == step && checkpoint->path() == report.path,
                     "found the newest step: " + cuts[from].name);
      findings.check(state.wrong_elements() == 0, cuts[from].name + " -> " + to.name);
      findings.check(io::verify(*checkpoint, world).empty(), "verifies");
    }
  });
}

TEST_CASE(
    "a node-local step comes back on any transport, also when a node that has a partner is lost") {
  harness::on_ranks([](comm::Communicator& world, Findings& findings) {
    const SharedFolder folder(world);
    TierCluster cluster{.root = folder.path(), .node_of_rank = {}, .cut = all_cuts()[1]};
    for (int rank = 0; rank < world.size(); ++rank) {
      cluster.node_of_rank.push_back((rank + 1) / 2);
    }
    cluster.run(
        [&](io::LocalTier& fast, io::CheckpointStore&, comm::Communicator& ranks) {
          fast.begin(ranks);
          findings.check(cluster.save_local_step(fast, 20, ranks).has_value(), "saved");
        },
        world);
    world.barrier();
    if (world.rank() == 0 && world.size() > 1) {
      std::filesystem::remove_all(cluster.node(0));
    }
    world.barrier();
    cluster.run(
        [&](io::LocalTier& fast, io::CheckpointStore& store, comm::Communicator& ranks) {
          findings.check(fast.promote_newest(ranks) == 20, "promoted");
          RankState state(cluster.model, cluster.cut.cut, ranks.rank(), ranks.size(), false);
          const auto checkpoint = store.restore(state.wanted, ranks);
          findings.check(checkpoint && checkpoint->step() == 20, "restored");
          findings.check(state.wrong_elements(20) == 0, "the values of the step");
        },
        world);
  });
}

TEST_CASE("a save that fails on rank 0 alone fails on every rank of any transport") {
  harness::on_ranks([](comm::Communicator& world, Findings& findings) {
    const SharedFolder folder(world);
    bool refused = false;
    try {
      save_as("/dev/null/checkpoints", all_cuts()[0], world.size(), 1, world);
    } catch (const Error& error) {
      refused = error.code() == ExitCode::cannot_write;
    }
    findings.check(refused, "exit code 73");
  });
}
