// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Steps spread over nodes: put together again they are, byte for byte, what a save into the store
/// writes; with whatever is lost a restart has a whole step and says what it could not have.
#include "captured_log.hpp"
#include "copied_run.hpp"
#include "save/damaging_communicator.hpp"
#include "tier_folders.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <atomic>
#include <memory>
#include <span>
#include <utility>

using namespace fourfold;
using namespace fourfold::io_test;
using Catch::Matchers::ContainsSubstring;
using harness::CapturedLog;
using harness::files_below;
using harness::read_bytes;
using harness::ScratchFolder;
namespace fs = std::filesystem;

TEST_CASE(
    "a node-local step put together again is what a save into the store writes, on any nodes") {
  const std::vector<int> nodes =
      GENERATE(std::vector{0}, std::vector{0, 0, 0}, std::vector{0, 1}, std::vector{0, 0, 0, 1},
               std::vector{0, 1, 1, 1}, std::vector{1, 0, 1}, std::vector{0, 0, 1, 1, 1, 2});
  const bool partner = GENERATE(true, false);
  for (const NamedCut& cut : all_cuts()) {
    CAPTURE(nodes, partner, cut.name);
    const ScratchFolder scratch;
    const TierCluster cluster{
        .root = scratch.path(), .node_of_rank = nodes, .partner = partner, .cut = cut};
    make_steps(cluster);
    const CapturedLog log;
    const auto found = cluster.restart();
    CHECK(found.step == 20);
    CHECK(found.promoted == 20);
    CHECK(found.wrong == 0);
    CHECK(log.text().empty());
    comm::run_ranks(cluster.ranks(), [&](comm::Communicator& world) {
      io::CheckpointStore direct(scratch / "direct", cluster.options);
      cluster.save(direct, 20, world);
    });
    const auto promoted = files_below(cluster.store() / local_step);
    CHECK(promoted == files_below(scratch / "direct" / local_step));
    CHECK(read_bytes(cluster.store() / "LATEST") == read_bytes(scratch / "direct/LATEST"));
  }
}

TEST_CASE("files of several chunks reach a partner with fewer ranks") {
  const std::vector<int> nodes = GENERATE(std::vector{0, 0, 0, 1}, std::vector{0, 1, 1, 2, 2, 2});
  const ScratchFolder scratch;
  TierCluster cluster{.root = scratch.path(), .node_of_rank = nodes, .cut = all_cuts()[1]};
  cluster.model = {{{"a", io::TensorState::master}, DType::f32, {9'000'001}},
                   {{"b", io::TensorState::master}, DType::f32, {3, 2}}};
  make_steps(cluster);
  fs::remove_all(cluster.node(0));
  const auto found = cluster.restart();
  CHECK(found.step == 20);
  CHECK(found.wrong == 0);
}

TEST_CASE("a node-local step restarts on another mesh and other nodes, ranks without a share too") {
  const ScratchFolder scratch;
  const TierCluster saved{
      .root = scratch.path(), .node_of_rank = {0, 0, 1, 1, 1, 2, 2}, .cut = all_cuts()[3]};
  make_steps(saved);
  const std::vector<int> nodes = GENERATE(std::vector{0, 1, 2}, std::vector{2, 1, 0, 0},
                                          std::vector{1, 0}, std::vector{3, 2, 1, 0});
  for (const NamedCut& cut : all_cuts()) {
    CAPTURE(nodes, cut.name);
    const ScratchFolder copy;
    harness::copy_run(scratch.path(), copy.path());
    const TierCluster later{.root = copy.path(), .node_of_rank = nodes, .cut = cut};
    const auto found = later.restart();
    CHECK(found.step == 20);
    CHECK(found.wrong == 0);
  }
}

TEST_CASE("one node lost: with partners nothing is, without them an older step is gone on from") {
  const std::vector<int> nodes =
      GENERATE(std::vector{0, 1}, std::vector{0, 0, 1, 2, 2}, std::vector{0, 1, 1, 2, 3});
  const bool partner = GENERATE(true, false);
  const int lost = GENERATE(0, 1, 2, 3);
  if (lost > *std::ranges::max_element(nodes)) {
    return;
  }
  CAPTURE(nodes, partner, lost);
  const ScratchFolder scratch;
  const TierCluster cluster{
      .root = scratch.path(), .node_of_rank = nodes, .partner = partner, .cut = all_cuts()[1]};
  make_steps(cluster);
  fs::remove_all(cluster.node(lost));
  const CapturedLog log;
  const auto found = cluster.restart();
  CHECK(found.wrong == 0);
  CHECK(found.step == (partner ? 20 : 5));
  if (partner) {
    CHECK(log.text().empty());
  } else {
    CHECK_THAT(log.text(), ContainsSubstring("step 20 of the node-local tier is passed over: ") &&
                               ContainsSubstring("files are on no node of this run: shard-0"));
  }
}

TEST_CASE("two neighbours lost: an older node-local step, that is whole, or the store's is taken") {
  const ScratchFolder scratch;
  const TierCluster cluster{
      .root = scratch.path(), .node_of_rank = {0, 0, 1, 2}, .keep_last = 2, .cut = all_cuts()[1]};
  make_steps(cluster, {10, 20});
  const bool loses_older = GENERATE(false, true);
  for (const int node : {1, 2}) {
    fs::remove_all(loses_older ? cluster.node(node) : home(cluster, node) / local_step);
  }
  const CapturedLog log;
  const auto found = cluster.restart();
  CHECK(found.step == (loses_older ? 5 : 10));
  CHECK(found.wrong == 0);
  CHECK_THAT(log.text(), ContainsSubstring("1 of its 4 files are on no node of this run: "
                                           "shard-00002-of-00004.h5"));
}

TEST_CASE("a byte flipped in any file of any node is found, and the other copy taken") {
  const bool partner = GENERATE(true, false);
  const ScratchFolder scratch;
  const TierCluster cluster{
      .root = scratch / "run", .node_of_rank = {0, 1, 1}, .partner = partner, .cut = all_cuts()[2]};
  make_steps(cluster);
  harness::copy_run(cluster.root, scratch / "original");
  int payloads = 0;
  for (const int node : {0, 1}) {
    for (const std::string& name : names(home(cluster, node) / local_step)) {
      const std::string bytes = read_bytes(home(cluster, node) / local_step / name);
      for (const std::size_t byte : {std::size_t{0}, bytes.size() / 2, bytes.size() - 1}) {
        CAPTURE(partner, node, name, byte);
        fs::remove_all(cluster.root);
        harness::copy_run(scratch / "original", cluster.root);
        flip(home(cluster, node) / local_step / name, byte);
        const bool is_payload = name.starts_with("shard-");
        payloads += is_payload ? 1 : 0;
        const CapturedLog log;
        const auto found = cluster.restart();
        CHECK(found.wrong == 0);
        CHECK(found.step == (is_payload && !partner ? 5 : 20));
        if (is_payload && !partner) {
          CHECK_THAT(log.text(), ContainsSubstring("is passed over") &&
                                     ContainsSubstring(name + " is damaged (CRC-32C)"));
        }
      }
    }
  }
  CHECK(payloads == 3 * (partner ? 6 : 3));
}

TEST_CASE("nobody is told to repair what lies on a node: not all payloads are there") {
  const ScratchFolder scratch;
  const TierCluster cluster{
      .root = scratch.path(), .node_of_rank = {0, 1}, .partner = false, .cut = all_cuts()[1]};
  make_steps(cluster);
  const std::string file = GENERATE("index.h5", "MANIFEST.json");
  for (const int node : {0, 1}) {
    flip(home(cluster, node) / local_step / file, 100);
  }
  const CapturedLog log;
  CHECK(cluster.restart().step == 5);
  CHECK_THAT(log.text(), ContainsSubstring("no node has a manifest and an index that hold") &&
                             ContainsSubstring(file) && !ContainsSubstring("repair-index"));
}

namespace {

/// Counts the bytes that are broadcast to this rank, in its groups too.
class CountingCommunicator : public DamagingCommunicator {
 public:
  CountingCommunicator(comm::Communicator& inner, std::size_t& bytes)
      : DamagingCommunicator(inner), bytes_(bytes) {}
  CountingCommunicator(std::unique_ptr<Communicator> group, std::size_t& bytes)
      : DamagingCommunicator(*group), group_(std::move(group)), bytes_(bytes) {}
  comm::Work post(const comm::OperationCall& call) override {
    const bool comes_here = call.operation == comm::Operation::broadcast && call.peer != rank();
    bytes_ += comes_here ? call.recv.bytes() : 0;
    return inner().post(call);
  }
  std::unique_ptr<Communicator> subgroup(std::span<const int> members,
                                         const std::string& name) override {
    return std::make_unique<CountingCommunicator>(inner().subgroup(members, name), bytes_);
  }

 private:
  std::unique_ptr<Communicator> group_;
  std::size_t& bytes_;
};

}  // namespace

TEST_CASE("the index of a node-local step comes to the first rank of each node, and to no other") {
  const ScratchFolder scratch;
  const TierCluster cluster{
      .root = scratch.path(), .node_of_rank = {0, 0, 1, 1, 1}, .cut = all_cuts()[1]};
  std::vector<std::size_t> bytes(5);
  comm::run_ranks(5, [&](comm::Communicator& world) {
    std::size_t& own = bytes[static_cast<std::size_t>(world.rank())];
    CountingCommunicator counting(world, own);
    cluster.run(
        [&](io::LocalTier& fast, io::CheckpointStore&, comm::Communicator& ranks) {
          fast.begin(ranks);
          own = 0;
          cluster.save_local_step(fast, 20, ranks);
        },
        counting);
  });
  const std::size_t index = read_bytes(home(cluster, 1) / local_step / "index.h5").size();
  CAPTURE(bytes, index);
  CHECK(bytes[2] > index);
  for (const std::size_t other : {1, 3, 4}) {
    CHECK(bytes[other] < index);
  }
  CHECK(cluster.restart().step == 20);
}

TEST_CASE("nodes that know of different steps under one name are not put together") {
  const ScratchFolder scratch;
  const TierCluster cluster{
      .root = scratch / "run", .node_of_rank = {0, 1, 2}, .keep_last = 2, .cut = all_cuts()[1]};
  make_steps(cluster, {10, 20});
  const fs::path folder = home(cluster, 1) / local_step;
  SECTION("another state as the same step") {
    const TierCluster other{
        .root = scratch / "other", .node_of_rank = {0, 1, 2}, .cut = all_cuts()[1]};
    other.job([&](io::LocalTier& fast, io::CheckpointStore&, comm::Communicator& world) {
      fast.begin(world);
      other.with_state(
          20, world, [&](const io::SaveRequest& request) { return fast.save(request, world); }, 99);
    });
    fs::remove_all(folder);
    fs::copy(home(other, 1) / local_step, folder);
    const CapturedLog log;
    const auto found = cluster.restart();
    CHECK(found.step == 10);
    CHECK(found.wrong == 0);
    CHECK_THAT(log.text(),
               ContainsSubstring("the nodes of ranks 0 and 1 have different manifests of it"));
  }
  SECTION("an older step under the name: the other nodes' copies do") {
    fs::remove_all(folder);
    fs::copy(home(cluster, 1) / "step-000000010", folder);
    const auto found = cluster.restart();
    CHECK(found.step == 20);
    CHECK(found.wrong == 0);
  }
}

TEST_CASE("what a node has room for is foretold") {
  const ScratchFolder scratch;
  const bool partner = GENERATE(true, false);
  const TierCluster cluster{.root = scratch.path(),
                            .node_of_rank = {0, 0, 1},
                            .partner = partner,
                            .keep_last = 2,
                            .cut = all_cuts()[1]};
  cluster.job([&](io::LocalTier& fast, io::CheckpointStore&, comm::Communicator& world) {
    const auto layouts = RankState(cluster.model, cluster.cut.cut, 0, 3, true, 1).layouts;
    const auto bytes = io::plan_save(layouts, 3, cluster.options.plan).bytes_of_rank;
    // With two nodes each keeps all that there is.
    const std::int64_t step_bytes =
        partner ? bytes[0] + bytes[1] + bytes[2] : std::max(bytes[0] + bytes[1], bytes[2]);
    if (static_cast<std::int64_t>(fast.most_node_bytes(layouts)) != 3 * step_bytes) {
      throw UserError(ExitCode::internal, "another number");
    }
    world.barrier();
  });
}

TEST_CASE("a node-local step that is not newer than the store's is left alone") {
  const ScratchFolder scratch;
  const TierCluster cluster{.root = scratch.path(), .node_of_rank = {0, 1}};
  make_steps(cluster);
  const std::int64_t newer = GENERATE(20, 21);
  cluster.job([&](io::LocalTier&, io::CheckpointStore& store, comm::Communicator& world) {
    cluster.save(store, newer, world);
  });
  const auto before = files_below(cluster.store());
  const auto found = cluster.restart();
  CHECK(found.step == newer);
  CHECK_FALSE(found.promoted);
  CHECK(files_below(cluster.store()) == before);
}

TEST_CASE("a damaged step of the store makes way for the fast one of its name") {
  const ScratchFolder scratch;
  const TierCluster cluster{.root = scratch.path(), .node_of_rank = {0, 1}};
  make_steps(cluster);
  cluster.job([&](io::LocalTier&, io::CheckpointStore& store, comm::Communicator& world) {
    cluster.save(store, 20, world);
  });
  flip(cluster.store() / local_step / "index.h5", 100);
  const auto found = cluster.restart();
  CHECK(found.step == 20);
  CHECK(found.promoted == 20);
  CHECK(found.wrong == 0);
}

TEST_CASE("a step that the store has whole, and could not read for a moment, is taken there") {
  const ScratchFolder scratch;
  const TierCluster cluster{.root = scratch.path(), .node_of_rank = {0, 1}};
  make_steps(cluster);
  REQUIRE(cluster.restart().promoted == 20);
  const auto before = files_below(cluster.store());
  const CapturedLog log;
  std::atomic<int> promoted = 0;
  cluster.job([&](io::LocalTier& fast, io::CheckpointStore&, comm::Communicator& world) {
    promoted += fast.promote_newest(world, 5) == 20 ? 1 : 0;  // as if 20 had been damaged
  });
  CHECK(promoted == 2);
  CHECK(files_below(cluster.store()) == before);
}

TEST_CASE("a step of the store that a rank could not load makes way for the fast one of its name") {
  const ScratchFolder scratch;
  const TierCluster cluster{.root = scratch.path(), .node_of_rank = {0, 1}};
  make_steps(cluster);
  REQUIRE(cluster.restart().promoted == 20);
  const CapturedLog log;
  std::atomic<int> promoted = 0;
  cluster.job([&](io::LocalTier& fast, io::CheckpointStore& store, comm::Communicator& world) {
    const auto flip_much = [&] {  // restore() sees it, and those who look later do not
      if (world.rank() == 0) {
        const fs::path file = cluster.store() / local_step / "shard-00001-of-00002.h5";
        std::string bytes = read_bytes(file);
        for (std::size_t byte = 0; byte < bytes.size(); byte += 8) {
          bytes[byte] = static_cast<char>(bytes[byte] ^ 1);
        }
        harness::write_bytes(file, bytes);
      }
      world.barrier();
    };
    RankState state(cluster.model, cluster.cut.cut, world.rank(), cluster.ranks(), false);
    flip_much();
    const auto restored = store.restore(state.wanted, world);
    flip_much();
    const bool is_again = fast.promote_newest(world, 5) == 20;
    promoted += restored && restored->step() == 5 && is_again ? 1 : 0;
  });
  CHECK(promoted == 2);
  CHECK_THAT(log.text(), ContainsSubstring("was set aside as damaged-step-000000020-"));
  CHECK(cluster.restart().step == 20);
}

TEST_CASE("a promotion removes nothing, the next save what retention lets go") {
  const ScratchFolder scratch;
  TierCluster cluster{.root = scratch.path(), .node_of_rank = {0, 1}};
  make_steps(cluster);
  cluster.options.keep_last = 1;
  CHECK(cluster.restart().step == 20);
  CHECK(cluster.checkpoint_steps() == std::vector<std::int64_t>{5, 20});
  cluster.job([&](io::LocalTier&, io::CheckpointStore& store, comm::Communicator& world) {
    cluster.save(store, 25, world);
  });
  CHECK(cluster.checkpoint_steps() == std::vector<std::int64_t>{25});
}

TEST_CASE("of node-local steps the newest are kept, and what other runs left is not touched") {
  const ScratchFolder scratch;
  const TierCluster cluster{.root = scratch.path(), .node_of_rank = {0, 0, 1}, .keep_last = 2};
  for (const int node : {0, 1}) {
    fs::create_directories(cluster.node(node) / "0123456789abcdef/step-000000090");
    harness::write_bytes(cluster.node(node) / "0123456789abcdef/step-000000090/shard", "others'");
  }
  const auto others = files_below(cluster.node(0) / "0123456789abcdef");
  const std::string first = [&] {
    make_steps(cluster, {10, 20, 30, 40});
    return read_bytes(cluster.store() / ".fast-level");
  }();
  for (const int node : {0, 1}) {
    for (const auto& entry : fs::directory_iterator(cluster.node(node))) {
      if (entry.path().filename() != "0123456789abcdef") {
        CHECK(names(entry.path()) == std::vector<std::string>{"step-000000030", "step-000000040"});
      }
    }
  }
  CHECK(cluster.restart().step == 40);
  SECTION("a start that has what it needs begins under another word") {
    cluster.job([&](io::LocalTier& fast, io::CheckpointStore&, comm::Communicator& world) {
      fast.begin(world);
    });
    CHECK(read_bytes(cluster.store() / ".fast-level") != first);
  }
  SECTION("the end leaves nothing") {
    cluster.job([&](io::LocalTier& fast, io::CheckpointStore&, comm::Communicator& world) {
      fast.end(world);
    });
    CHECK_FALSE(fs::exists(cluster.store() / ".fast-level"));
  }
  for (const int node : {0, 1}) {
    CHECK(names(cluster.node(node)) == std::vector<std::string>{"0123456789abcdef"});
    CHECK(files_below(cluster.node(node) / "0123456789abcdef") == others);
  }
}

TEST_CASE("what a node that was away still holds does not come back") {
  const ScratchFolder scratch;
  const TierCluster cluster{
      .root = scratch.path(), .node_of_rank = {0, 1}, .partner = false, .cut = all_cuts()[1]};
  make_steps(cluster);
  fs::rename(cluster.node(1), scratch / "away");
  cluster.job([&](io::LocalTier& fast, io::CheckpointStore&, comm::Communicator& world) {
    if (fast.promote_newest(world)) {
      throw UserError(ExitCode::internal, "half a step was taken");
    }
    fast.begin(world);
    cluster.save_local_step(fast, 10, world);
  });
  fs::copy(scratch / "away", cluster.node(1), fs::copy_options::recursive);
  CHECK(cluster.restart().step == 10);
}
