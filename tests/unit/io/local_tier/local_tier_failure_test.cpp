// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Fast saves and promotions that fail: which of them end a run, which are a warning, and that what
/// was whole before stays whole.
#include "captured_log.hpp"
#include "file_size_limit.hpp"
#include "save/damaging_communicator.hpp"
#include "tier_folders.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <chrono>
#include <mutex>

using namespace fourfold;
using namespace fourfold::io_test;
using Catch::Matchers::ContainsSubstring;
using harness::CapturedLog;
using harness::files_below;
using harness::ScratchFolder;
namespace fs = std::filesystem;

TEST_CASE("a node-local step that does not fit is a warning, and the one before it stays whole") {
  const ScratchFolder scratch;
  const TierCluster cluster{
      .root = scratch.path(), .node_of_rank = {0, 0, 1}, .cut = all_cuts()[1]};
  make_steps(cluster);
  for (const rlim_t limit : {100, 1000, 3000, 9000}) {
    CAPTURE(limit);
    const CapturedLog log;
    std::mutex mutex;
    int saved = 0;
    cluster.job([&](io::LocalTier& fast, io::CheckpointStore&, comm::Communicator& world) {
      std::optional<harness::FileSizeLimit> limited;
      if (world.rank() == 0) {
        limited.emplace(limit);  // of the process, so of all ranks
      }
      world.barrier();
      const bool is_saved = cluster.save_local_step(fast, 30, world).has_value();
      world.barrier();
      const std::scoped_lock lock(mutex);
      saved += is_saved ? 1 : 0;
    });
    CHECK(saved == 0);
    CHECK_THAT(log.text(),
               ContainsSubstring("step 30 is not saved on the node-local tier, and training "
                                 "goes on: ") &&
                   ContainsSubstring("File too large"));
    for (const int node : {0, 1}) {
      CHECK(names(home(cluster, node)) == std::vector<std::string>{local_step});
    }
  }
  cluster.job([&](io::LocalTier& fast, io::CheckpointStore&, comm::Communicator& world) {
    cluster.save_local_step(fast, 40, world);
  });
  const auto found = cluster.restart();
  CHECK(found.step == 40);
  CHECK(found.wrong == 0);
}

TEST_CASE("a store that is full ends a restart, and nothing is lost") {
  const ScratchFolder scratch;
  const TierCluster cluster{
      .root = scratch.path(), .node_of_rank = {0, 0, 1}, .cut = all_cuts()[1]};
  make_steps(cluster);
  const auto store = files_below(cluster.store());
  for (const rlim_t limit : {100, 1000, 3000, 9000}) {
    CAPTURE(limit);
    int code = 0;
    try {
      cluster.job([&](io::LocalTier& fast, io::CheckpointStore&, comm::Communicator& world) {
        std::optional<harness::FileSizeLimit> limited;
        if (world.rank() == 0) {
          limited.emplace(limit);
        }
        world.barrier();
        fast.promote_newest(world);
      });
    } catch (const UserError& error) {
      code = static_cast<int>(error.code());
    }
    CHECK(code == 73);
    CHECK(files_below(cluster.store()) == store);
  }
  const auto found = cluster.restart();
  CHECK(found.step == 20);
  CHECK(found.wrong == 0);
}

namespace {

/// In place of a folder something that can be neither listed nor written, for root either: what a
/// disk that has died is to a program.
void kill_disk(const fs::path& folder) {
  fs::rename(folder, folder.string() + "-gone");
  fs::create_symlink(folder.filename(), folder);  // ELOOP
}

}  // namespace

TEST_CASE("a disk that dies while the run lives costs its node-local steps, not the run") {
  const ScratchFolder scratch;
  const TierCluster cluster{
      .root = scratch.path(), .node_of_rank = {0, 0, 1}, .cut = all_cuts()[1]};
  make_steps(cluster);
  const int node = GENERATE(0, 1);
  const bool whole_disk = GENERATE(false, true);
  const CapturedLog log;
  std::mutex mutex;
  int refused = 0;
  cluster.job([&](io::LocalTier& fast, io::CheckpointStore& store, comm::Communicator& world) {
    if (world.rank() == 0) {
      kill_disk(whole_disk ? cluster.node(node) : home(cluster, node));
    }
    world.barrier();
    const bool is_saved = cluster.save_local_step(fast, 30, world).has_value();
    cluster.save(store, 40, world);
    const std::scoped_lock lock(mutex);
    refused += is_saved ? 0 : 1;
  });
  CHECK(refused == 3);
  CHECK_THAT(log.text(),
             ContainsSubstring("step 30 is not saved on the node-local tier, and training "
                               "goes on: "));
  CHECK(fs::exists(cluster.store() / "step-000000040"));
}

TEST_CASE("a disk that has died keeps no run from starting whose other nodes have copies") {
  const ScratchFolder scratch;
  const TierCluster cluster{
      .root = scratch.path(), .node_of_rank = {0, 0, 1}, .cut = all_cuts()[1]};
  make_steps(cluster);
  const int node = GENERATE(0, 1);
  kill_disk(cluster.node(node));
  const CapturedLog log;
  const auto found = cluster.restart();
  CHECK(found.step == 20);
  CHECK(found.wrong == 0);
  CHECK_THAT(log.text(),
             ContainsSubstring("cannot be used on 1 of 2 nodes") &&
                 ContainsSubstring(node == 0 ? "rank 0: " : "rank 2: ") &&
                 ContainsSubstring(cluster.node(node).string() + ": cannot be written"));
  CHECK(names(cluster.node(1 - node)).size() == 1);  // no file of the trial stays
  cluster.job([&](io::LocalTier& fast, io::CheckpointStore&, comm::Communicator& world) {
    fast.begin(world);
    if (cluster.save_local_step(fast, 30, world)) {
      throw UserError(ExitCode::internal, "a step was saved on half of the nodes");
    }
    fast.end(world);
  });
  CHECK(fs::is_empty(cluster.node(1 - node)));
}

TEST_CASE("node-local steps that are nowhere are told of") {
  const ScratchFolder scratch;
  const TierCluster cluster{.root = scratch.path(), .node_of_rank = {0, 1}};
  make_steps(cluster);
  fs::remove_all(cluster.node(0));
  fs::remove_all(cluster.node(1));
  const CapturedLog log;
  CHECK(cluster.restart().step == 5);
  CHECK_THAT(log.text(), ContainsSubstring("no node has node-local steps of the start before"));
}

TEST_CASE("a folder that no node can use is refused at the start") {
  const ScratchFolder scratch;
  const TierCluster cluster{.root = scratch.path(), .node_of_rank = {0, 1, 1}};
  for (const int node : {0, 1}) {
    fs::create_directories(cluster.node(node));
    kill_disk(cluster.node(node));
  }
  int code = 0;
  try {
    cluster.job([](io::LocalTier&, io::CheckpointStore&, comm::Communicator&) {});
  } catch (const UserError& error) {
    code = static_cast<int>(error.code());
    CHECK_THAT(error.what(), ContainsSubstring("node0: cannot be written") &&
                                 ContainsSubstring("node1: cannot be written"));
  }
  CHECK(code == 73);
}

TEST_CASE("replicas that have diverged end the run, also at a node-local save") {
  const ScratchFolder scratch;
  const TierCluster cluster{.root = scratch.path(), .node_of_rank = {0, 1, 1}};
  make_steps(cluster);
  std::mutex mutex;
  int refused = 0;
  cluster.job([&](io::LocalTier& fast, io::CheckpointStore&, comm::Communicator& world) {
    try {
      cluster.with_state(
          30, world, [&](const io::SaveRequest& request) { return fast.save(request, world); },
          world.rank() == 1 ? 31 : 30);
    } catch (const SystemError& error) {
      const std::scoped_lock lock(mutex);
      refused += error.code() == ExitCode::data_corrupt ? 1 : 0;
    }
  });
  CHECK(refused == 3);
  CHECK(cluster.restart().step == 20);
}

namespace {

/// Changes a byte of what it sends from rank to rank.
class DamagingSender : public DamagingCommunicator {
 public:
  using DamagingCommunicator::DamagingCommunicator;
  std::unique_ptr<Communicator> subgroup(std::span<const int> members,
                                         const std::string& name) override {
    return inner().subgroup(members, name);
  }
  comm::Work post(const comm::OperationCall& call) override {
    if (call.operation != comm::Operation::send) {
      return inner().post(call);
    }
    const auto* const bytes = static_cast<const std::byte*>(call.send.data());
    damaged_.assign(bytes, bytes + call.send.bytes());
    damaged_[damaged_.size() / 2] ^= std::byte{4};
    comm::OperationCall damaged = call;
    damaged.send = {damaged_.data(), call.send.dtype(), call.send.shape()};
    return inner().post(damaged);
  }

 private:
  std::vector<std::byte> damaged_;
};

}  // namespace

TEST_CASE("a partner's copy that arrives damaged is refused") {
  const ScratchFolder scratch;
  const TierCluster cluster{
      .root = scratch.path(), .node_of_rank = {0, 0, 1}, .cut = all_cuts()[1]};
  make_steps(cluster);
  const CapturedLog log;
  comm::run_ranks(3, [&](comm::Communicator& world) {
    DamagingSender damaging(world);
    comm::Communicator& used = world.rank() == 1 ? damaging : world;
    cluster.run([&](io::LocalTier& fast, io::CheckpointStore&,
                    comm::Communicator& ranks) { cluster.save_local_step(fast, 30, ranks); },
                used);
  });
  CHECK_THAT(log.text(),
             ContainsSubstring("shard-00001-of-00003.h5: the copy for the other node arrived with "
                               "other bytes than were saved"));
  const auto found = cluster.restart();
  CHECK(found.step == 20);
  CHECK(found.wrong == 0);
}

TEST_CASE("what a start that was killed tried its folders with is removed by one an hour later") {
  const ScratchFolder scratch;
  const TierCluster cluster{.root = scratch.path(), .node_of_rank = {0, 1, 1}};
  for (const int node : {0, 1}) {
    fs::create_directories(cluster.node(node));
    for (const char* const name : {".probe-0123456789abcdef-0", ".probe-fedcba9876543210-0"}) {
      harness::write_bytes(cluster.node(node) / name, "");
    }
    fs::last_write_time(cluster.node(node) / ".probe-0123456789abcdef-0",
                        fs::file_time_type::clock::now() - std::chrono::minutes(61));
  }
  cluster.job([](io::LocalTier&, io::CheckpointStore&, comm::Communicator&) {});
  for (const int node : {0, 1}) {
    CHECK(names(cluster.node(node)) == std::vector<std::string>{".probe-fedcba9876543210-0"});
  }
}

TEST_CASE("a folder that nodes share, or that ranks of a node do not, is refused") {
  const ScratchFolder scratch;
  const bool shared = GENERATE(true, false);
  std::mutex mutex;
  std::vector<std::string> messages;
  comm::run_ranks(3, [&](comm::Communicator& world) {
    const io::CheckpointStore store(scratch / "checkpoints");
    const std::string name = shared || world.rank() == 0 ? "a" : "b";
    try {
      const io::LocalTier fast(
          {.directory = scratch / name,
           .node_of_rank = shared ? std::vector{0, 1, 1} : std::vector{0, 0, 0}},
          store, world);
    } catch (const UserError& error) {
      const std::scoped_lock lock(mutex);
      messages.push_back(error.what());
    }
  });
  REQUIRE(messages.size() == 3);
  CHECK_THAT(messages.front(), ContainsSubstring("checkpoint.node_local_dir = \"") &&
                                   ContainsSubstring(shared ? "the same folder on several nodes"
                                                            : "another folder for some ranks"));
  CHECK_FALSE(fs::exists(scratch / "a"));  // what a start that is refused has made goes with it
}
