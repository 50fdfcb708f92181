// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
// Which nodes are blamed for files that they do not see. That a real one does not:
// tests/slurm/missing_program.bash.
#include "node_files.hpp"

#include "scratch_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/comm/thread_group.hpp>

#include <catch2/catch_test_macros.hpp>

#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

using fourfold::ExitCode;
using fourfold::comm::Failure;
using fourfold::harness::ScratchFolder;
using fourfold::train_program::BlindNodes;
using fourfold::train_program::find_blind_nodes;
namespace runfile = fourfold::runfile;

namespace {

/// What all ranks find, which must be the same, of two on each host; those of `failing` could not
/// read the run file.
BlindNodes found(int hosts, const std::set<int>& failing, ExitCode code = ExitCode::config) {
  const ScratchFolder scratch;
  runfile::RunConfig config;
  config.log.dir = (scratch / "run").string();
  config.checkpoint.dir = (scratch / "not" / "yet" / "there").string();
  config.data.train = {(scratch / "tokens_*.bin").string()};
  std::mutex mutex;
  std::vector<BlindNodes> all;
  fourfold::comm::run_ranks(2 * hosts, [&](fourfold::comm::Communicator& world) {
    const bool fails = failing.contains(world.rank());
    const auto failure =
        fails ? std::optional(Failure{code, true, "cannot read the run file", {}}) : std::nullopt;
    BlindNodes blind = find_blind_nodes(fails ? std::nullopt : std::optional(config), failure,
                                        "n" + std::to_string(world.rank() / 2), world);
    const std::scoped_lock lock(mutex);
    all.push_back(std::move(blind));
  });
  for (const BlindNodes& one : all) {
    CHECK(one.hosts == all.front().hosts);
    CHECK(one.reason == all.front().reason);
  }
  return all.front();
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("fewer than half of the nodes may be blind, and the others see", "[node_files]") {
  CHECK(found(3, {}).hosts.empty());
  CHECK(found(3, {2}).hosts == Names{"n1"});
  CHECK(found(3, {3}).reason == "rank 3 on n1: cannot read the run file");
  CHECK(found(3, {4, 5}).hosts == Names{"n2"});
  CHECK(found(5, {2, 9}).hosts == Names{"n1", "n4"});
}

TEST_CASE("what half of the nodes do not see is the run file's fault", "[node_files]") {
  CHECK(found(3, {2, 4}).hosts.empty());
  CHECK(found(2, {3}).hosts.empty());
  CHECK(found(4, {2, 4}).hosts.empty());
  CHECK(found(1, {1}).hosts.empty());
}

TEST_CASE("rank 0 may be the one that does not see", "[node_files]") {
  CHECK(found(3, {0}).hosts == Names{"n0"});
  CHECK(found(3, {0, 1}).first_seeing_rank == 2);
  CHECK(found(3, {4}).first_seeing_rank == 0);
}

TEST_CASE("what nobody can read, and what is no file's fault, is told as it is", "[node_files]") {
  CHECK(found(3, {0, 1, 2, 3, 4, 5}).hosts.empty());
  CHECK(found(3, {2}, ExitCode::internal).hosts.empty());
}

TEST_CASE(
    "a folder is elsewhere where its file system is of another kind, and it is another folder",
    "[node_files]") {
  using fourfold::train_program::FolderPlace;
  using fourfold::train_program::is_elsewhere;
  constexpr FolderPlace nfs{.kind = 0x6969, .inode = 7};
  constexpr FolderPlace served{.kind = 0xEF53, .inode = 7};  // by this host
  constexpr FolderPlace own{.kind = 0xEF53, .inode = 8};
  CHECK_FALSE(is_elsewhere(nfs, std::vector{nfs, nfs, served}));
  CHECK_FALSE(is_elsewhere(served, std::vector{nfs, nfs, served}));
  CHECK(is_elsewhere(own, std::vector{nfs, nfs, own}));
  CHECK_FALSE(is_elsewhere(nfs, std::vector{nfs, nfs, own}));
  CHECK_FALSE(is_elsewhere(own, std::vector{nfs, nfs, own, own}));
  CHECK_FALSE(is_elsewhere(own, std::vector<FolderPlace>{{}, {}, own}));  // nobody can say
  CHECK_FALSE(is_elsewhere(own, std::vector{own}));
}
