// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Whose node-local steps they are: those of the directory that has their word, and of no copy of
/// it; of the job that holds its lease, and of none that has lost it.
#include "captured_log.hpp"
#include "copied_run.hpp"
#include "tier_folders.hpp"

#include <fourfold/base/log.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <string_view>

using namespace fourfold;
using namespace fourfold::io_test;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using harness::CapturedLog;
using harness::files_below;
using harness::read_bytes;
using harness::ScratchFolder;
namespace fs = std::filesystem;

TEST_CASE("a copy of the checkpoints has none of the run's node-local steps, and takes none away") {
  const ScratchFolder scratch;
  const TierCluster cluster{.root = scratch / "run", .node_of_rank = {0, 1}};
  make_steps(cluster);
  fs::copy(cluster.store(), scratch / "copy", fs::copy_options::recursive);
  fs::rename(cluster.store(), scratch / "original");
  fs::rename(scratch / "copy", cluster.store());
  const auto on_nodes = [&] {
    return std::pair(files_below(cluster.node(0)), files_below(cluster.node(1)));
  };
  const auto before = on_nodes();
  const bool has_level = GENERATE(true, false);
  const CapturedLog log;
  if (has_level) {
    CHECK(cluster.restart().step == 5);
    cluster.job([&](io::LocalTier& fast, io::CheckpointStore&, comm::Communicator& world) {
      fast.begin(world);
      cluster.save_local_step(fast, 20, world);
      fast.end(world);
    });
  } else {
    comm::run_ranks(2, [&](comm::Communicator& world) {
      io::forget_local_tier(io::CheckpointStore(cluster.store(), cluster.options), world);
    });
  }
  CHECK_THAT(log.text(), ContainsSubstring(".fast-level: came with a copy of the checkpoints") &&
                             !ContainsSubstring("an earlier start of this run"));
  CHECK_FALSE(fs::exists(cluster.store() / ".fast-level"));
  CHECK(on_nodes() == before);
  fs::rename(cluster.store(), scratch / "copy");
  fs::rename(scratch / "original", cluster.store());
  CHECK(cluster.restart().step == 20);
}

TEST_CASE("a directory that was made anew has no node-local steps, whatever number it got") {
  const ScratchFolder scratch;
  const TierCluster cluster{.root = scratch / "run", .node_of_rank = {0, 1}};
  make_steps(cluster);
  const fs::path file = cluster.store() / ".fast-level";
  const std::string text = read_bytes(file);
  const std::size_t birth = text.rfind(' ') + 1;
  if (text.substr(birth) == "0.000000000\n") {
    SKIP("this file system does not know when a directory was made");
  }
  harness::write_bytes(file, text.substr(0, birth) + "1700000000.000000001\n");
  const CapturedLog log;
  CHECK(cluster.restart().step == 5);
  CHECK_THAT(log.text(), ContainsSubstring("came with a copy of the checkpoints"));
  harness::write_bytes(file, text);
  CHECK(cluster.restart().step == 20);
}

TEST_CASE("checkpoints that were moved have their run's node-local steps still") {
  const ScratchFolder scratch;
  TierCluster cluster{.root = scratch / "run", .node_of_rank = {0, 1}};
  make_steps(cluster);
  fs::create_directory(scratch / "elsewhere");
  fs::rename(cluster.root, scratch / "elsewhere/run");
  cluster.root = scratch / "elsewhere/run";
  CHECK(cluster.restart().step == 20);
}

TEST_CASE("a run that has no node-local tier any more forgets what it had") {
  const ScratchFolder scratch;
  const TierCluster cluster{.root = scratch.path(), .node_of_rank = {0, 1}};
  make_steps(cluster);
  const CapturedLog log;
  comm::run_ranks(2, [&](comm::Communicator& world) {
    const io::CheckpointStore store(cluster.store(), cluster.options);
    io::forget_local_tier(store, world);
    io::forget_local_tier(store, world);
  });
  CHECK_THAT(log.text(),
             ContainsSubstring("an earlier start of this run had checkpoint.node_local_dir"));
  CHECK(std::ranges::count(log.text(), '\n') == 1);
  CHECK(cluster.restart().step == 5);
}

TEST_CASE("a word that nobody can read is none") {
  const ScratchFolder scratch;
  const TierCluster cluster{.root = scratch.path(), .node_of_rank = {0, 1}};
  make_steps(cluster);
  const std::string text = GENERATE("", "fourfold-fast-level 1 ../../../../../x 7 1.000000000\n",
                                    "fourfold-fast-level 2 0123456789abcdef 7 1.000000000\n",
                                    "fourfold-fast-level 1 0123456789abcdef\n",
                                    "fourfold-fast-level 1 0123456789abcdef \n",
                                    "fourfold-fast-level 1 0123456789abcdef 7 1.000000000",
                                    "fourfold-fast-level 1 0123456789abcdef -7 1.000000000\n",
                                    "fourfold-fast-level 1 0123456789abcdef/7 1.000000000\n",
                                    "fourfold-fast-level 1 0123456789abcdef 7 1.000000000\n\n");
  harness::write_bytes(cluster.store() / ".fast-level", text);
  const CapturedLog log;
  CHECK(cluster.restart().step == 5);
  CHECK_THAT(log.text(), ContainsSubstring(".fast-level: is not what a run writes there"));
}

TEST_CASE("a file of somebody's that is called like the word is left alone") {
  const ScratchFolder scratch;
  const TierCluster cluster{.root = scratch.path(), .node_of_rank = {0, 1}};
  make_steps(cluster);
  const std::string text =
      GENERATE("slow is smooth\n", "fourfold fast-level 1 0123456789abcdef 7\n");
  harness::write_bytes(cluster.store() / ".fast-level", text);
  CHECK_THROWS_MATCHES(
      cluster.restart(), UserError,
      MessageMatches(ContainsSubstring(".fast-level: is not a file that fourfold wrote")));
  CHECK(read_bytes(cluster.store() / ".fast-level") == text);
}

TEST_CASE("a word that cannot be read ends a start, and what it stands for is still there") {
  const ScratchFolder scratch;
  const TierCluster cluster{.root = scratch.path(), .node_of_rank = {0, 1}};
  make_steps(cluster);
  const fs::path file = cluster.store() / ".fast-level";
  fs::rename(file, scratch / "word");
  fs::create_symlink(".fast-level", file);  // ELOOP, for root too
  std::string message;
  try {
    cluster.restart();
  } catch (const UserError& error) {
    message = error.what();
  }
  CHECK_THAT(message, ContainsSubstring("nobody can tell which node-local steps this run has"));
  message.clear();
  try {  // nor does a run without the key forget it
    comm::run_ranks(2, [&](comm::Communicator& world) {
      io::forget_local_tier(io::CheckpointStore(cluster.store(), cluster.options), world);
    });
  } catch (const UserError& error) {
    message = error.what();
  }
  CHECK_THAT(message, ContainsSubstring("nobody can tell which node-local steps this run has"));
  fs::remove(file);
  fs::rename(scratch / "word", file);
  CHECK(cluster.restart().step == 20);
}

TEST_CASE("a run that stood still removes nothing of the one that took over") {
  const ScratchFolder scratch;
  const TierCluster cluster{.root = scratch.path(), .node_of_rank = {0, 1}};
  const bool has_begun = GENERATE(false, true);  // the other one, with a word of its own
  const std::string other = "fourfold-fast-level 1 0123456789abcdef 7 1.000000000\n";
  std::string own;
  const CapturedLog log;
  cluster.job([&](io::LocalTier& fast, io::CheckpointStore& store, comm::Communicator& world) {
    store.take_lease(world);
    fast.begin(world);
    cluster.save_local_step(fast, 20, world);
    if (world.rank() == 0) {
      own = read_bytes(cluster.store() / ".fast-level");
      harness::write_bytes(cluster.store() / ".lease",
                           "fourfold-lease 1 fedcba9876543210 elsewhere - 7 - 0 3\n");
      if (has_begun) {
        harness::write_bytes(cluster.store() / ".fast-level", other);
      }
    }
    world.barrier();
    fast.end(world);
  });
  CHECK(read_bytes(cluster.store() / ".fast-level") == (has_begun ? other : own));
  // What the other one may be putting together stays; once it has begun, nobody wants it.
  for (const int node : {0, 1}) {
    CHECK(fs::is_empty(cluster.node(node)) == has_begun);
  }
  CHECK_THAT(log.text(), ContainsSubstring("the lease of this directory is lost to process 7 on"));
}

namespace {

/// Another one takes over while a process stands still: its lease and, once it has begun, its word.
void take_over(const TierCluster& cluster, bool has_begun) {
  harness::write_bytes(cluster.store() / ".lease",
                       "fourfold-lease 1 fedcba9876543210 elsewhere - 7 - 0 3\n");
  if (has_begun) {
    harness::write_bytes(cluster.store() / ".fast-level",
                         "fourfold-fast-level 1 0123456789abcdef 7 1.000000000\n");
  }
}

int code_of(const std::function<void()>& job) {
  try {
    job();
  } catch (const UserError& error) {
    return static_cast<int>(error.code());
  }
  return 0;
}

}  // namespace

TEST_CASE("a run that loses its lease while it begins leaves word and steps as they are") {
  const ScratchFolder scratch;
  const TierCluster cluster{.root = scratch.path(), .node_of_rank = {0, 1}};
  make_steps(cluster);
  const std::string word = read_bytes(cluster.store() / ".fast-level");
  const log::Sink before = log::set_sink([&](log::Level, std::string_view line) {
    if (line.find("are removed (of step 20)") != std::string_view::npos) {
      take_over(cluster, false);
    }
  });
  CHECK(code_of([&] {
          cluster.job(
              [&](io::LocalTier& fast, io::CheckpointStore& store, comm::Communicator& world) {
                store.take_lease(world);
                fast.begin(world);
              });
        }) == 93);
  log::set_sink(before);
  CHECK(read_bytes(cluster.store() / ".fast-level") == word);
  CHECK(cluster.restart().step == 20);
}

TEST_CASE("a node-local save that another's start overtakes leaves no folder after") {
  const ScratchFolder scratch;
  std::atomic<bool> is_taken = false;
  TierCluster cluster{.root = scratch.path(), .node_of_rank = {0, 1}};
  cluster.options.done_with = [&](const void*, std::size_t) {  // while it is written
    if (!is_taken.exchange(true)) {
      take_over(cluster, true);
    }
  };
  CHECK(code_of([&] {
          cluster.job(
              [&](io::LocalTier& fast, io::CheckpointStore& store, comm::Communicator& world) {
                store.take_lease(world);
                fast.begin(world);
                cluster.save_local_step(fast, 20, world);
              });
        }) == 93);
  CHECK(is_taken);
  for (const int node : {0, 1}) {
    CHECK(fs::is_empty(cluster.node(node)));
  }
}

TEST_CASE("a run whose lease is lost begins nothing, and saves nothing") {
  const ScratchFolder scratch;
  const TierCluster cluster{.root = scratch.path(), .node_of_rank = {0, 1}};
  make_steps(cluster);
  const bool has_begun = GENERATE(false, true);
  int code = 0;
  try {
    cluster.job([&](io::LocalTier& fast, io::CheckpointStore& store, comm::Communicator& world) {
      store.take_lease(world);
      if (has_begun) {
        fast.begin(world);
        cluster.save_local_step(fast, 20, world);
      }
      if (world.rank() == 0) {
        harness::write_bytes(cluster.store() / ".lease",
                             "fourfold-lease 1 fedcba9876543210 elsewhere - 7 - 0 3\n");
      }
      world.barrier();
      if (has_begun) {
        cluster.save_local_step(fast, 30, world);
      } else {
        fast.begin(world);
      }
    });
  } catch (const UserError& error) {
    code = static_cast<int>(error.code());
  }
  CHECK(code == 93);
  CHECK(cluster.restart().step == 20);
}
