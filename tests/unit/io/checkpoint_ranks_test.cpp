// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
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
      const auto checkpoint = io::CheckpointStore(folder.path()).restore(state.wanted, world);
      findings.check(checkpoint && checkpoint->step() == step && checkpoint->path() == report.path,
                     "found the newest step: " + cuts[from].name);
      findings.check(state.wrong_elements() == 0, cuts[from].name + " -> " + to.name);
      findings.check(io::verify(*checkpoint, world).empty(), "verifies");
    }
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
