// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "captured_log.hpp"
#include "file_size_limit.hpp"
#include "position_coded_state.hpp"
#include "save_attempt.hpp"
#include "scratch_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/comm/thread_group.hpp>
#include <fourfold/io/background_saver.hpp>
#include <fourfold/io/checkpoint_find.hpp>

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <thread>

using namespace fourfold;
using namespace fourfold::io_test;
using harness::read_bytes;
using harness::ScratchFolder;
namespace fs = std::filesystem;

namespace {

constexpr int ranks = 3;
const io::StoreOptions options{.keep_last = 0, .plan = {.smallest_part_bytes = 64}};

io::SaveRequest request_of(const RankState& state, std::int64_t step) {
  return {.step = step,
          .mesh = {1, ranks, 1, 1},
          .scalars = some_scalars(step),
          .tensors = state.layouts,
          .pieces = state.pieces};
}

void overwrite(RankState& state) {
  for (const io::WantedBox& box : state.wanted) {
    std::fill_n(static_cast<std::byte*>(box.data.data()), box.data.bytes(), std::byte{0xa5});
  }
}

/// Brings what was overwritten back.
void arrive(RankState& state, const RankState& original) {
  for (std::size_t i = 0; i < state.wanted.size(); ++i) {
    std::memcpy(state.wanted[i].data.data(), original.wanted[i].data.data(),
                original.wanted[i].data.bytes());
  }
}

void save_at_once(const fs::path& directory, std::int64_t step) {
  comm::run_ranks(ranks, [&](comm::Communicator& world) {
    save_as(directory, all_cuts()[3], ranks, step, world, options);
  });
}

bool same_files(const fs::path& a, const fs::path& b) {
  const auto all = names(a);
  return all == names(b) && std::ranges::all_of(all, [&](const std::string& name) {
           return read_bytes(a / name) == read_bytes(b / name);
         });
}

}  // namespace

TEST_CASE("what changes after begin() is not in the checkpoint", "[background]") {
  const ScratchFolder scratch;
  for (const NamedCut& cut : all_cuts()) {
    CAPTURE(cut.name);
    const fs::path direct = scratch / ("direct-" + cut.name);
    const fs::path background = scratch / ("background-" + cut.name);
    std::atomic<int> reports{0};
    comm::run_ranks(ranks, [&](comm::Communicator& world) {
      save_as(direct, cut, ranks, 10, world, options);
      save_as(direct, cut, ranks, 20, world, options);
      const RankState original(small_model(), cut.cut, world.rank(), ranks, true);
      const io::CheckpointStore store(background, options);
      io::BackgroundSaver saver(store, original.layouts, world);
      for (const std::int64_t step : {10, 20}) {
        RankState state(small_model(), cut.cut, world.rank(), ranks, true);
        saver.begin(request_of(state, step), world);
        overwrite(state);
        if (saver.is_busy() && saver.step() == step) {
          reports += saver.finish(world).has_value() ? 1 : 0;
        }
      }
    });
    REQUIRE(reports == 2 * ranks);
    REQUIRE(same_files(direct / "step-000000010", background / "step-000000010"));
    REQUIRE(same_files(direct / "step-000000020", background / "step-000000020"));
    REQUIRE(names(background) == names(direct));
  }
}

TEST_CASE("a save is reported once, to all ranks at the same poll, when it is complete",
          "[background]") {
  const ScratchFolder scratch;
  std::mutex mutex;
  std::vector<int> polls;
  std::atomic<int> incomplete{0};
  comm::run_ranks(ranks, [&](comm::Communicator& world) {
    const RankState state(small_model(), all_cuts()[3].cut, world.rank(), ranks, true);
    const io::CheckpointStore store(scratch / "c", options);
    io::BackgroundSaver saver(store, state.layouts, world);
    incomplete += saver.poll(world) ? 1 : 0;  // nothing is under way
    saver.begin(request_of(state, 10), world);
    int poll = 0;
    std::optional<io::SaveReport> report;
    while (saver.is_busy()) {
      ++poll;
      report = saver.poll(world);
    }
    incomplete += report && fs::exists(report->path / "MANIFEST.json") ? 0 : 1;
    incomplete += saver.poll(world) || saver.finish(world) ? 1 : 0;
    const std::scoped_lock lock(mutex);
    polls.push_back(poll);
  });
  CHECK(incomplete == 0);
  CHECK(std::ranges::count(polls, polls.front()) == ranks);
  CHECK(polls.front() >= 2);
}

TEST_CASE("a save that fails in the background fails on all ranks at a poll, and the next works",
          "[background]") {
  const ScratchFolder scratch;
  save_at_once(scratch / "c", 10);
  std::mutex mutex;
  std::vector<std::string> messages;
  std::atomic<int> saved{0};
  comm::run_ranks(ranks, [&](comm::Communicator& world) {
    const RankState state(small_model(), all_cuts()[3].cut, world.rank(), ranks, true);
    const io::CheckpointStore store(scratch / "c", options);
    io::BackgroundSaver saver(store, state.layouts, world);
    std::optional<harness::FileSizeLimit> limit;
    world.barrier();
    if (world.rank() == 0) {
      limit.emplace(5000);  // of the whole process
    }
    world.barrier();
    try {
      saver.begin(request_of(state, 20), world);
      saver.finish(world);
    } catch (const UserError& error) {
      const std::scoped_lock lock(mutex);
      messages.emplace_back(error.what());
    }
    world.barrier();
    limit.reset();
    world.barrier();
    if (!saver.is_busy()) {
      saver.begin(request_of(state, 30), world);
      saved += saver.finish(world) ? 1 : 0;
    }
  });
  REQUIRE(messages.size() == ranks);
  CHECK(messages[0].find("cannot be written") != std::string::npos);
  CHECK(messages[0].find("checkpoints that exist are untouched") != std::string::npos);
  CHECK(saved == ranks);
  CHECK(names(scratch / "c") ==
        std::vector<std::string>{"LATEST", "step-000000010", "step-000000030"});
}

TEST_CASE("a save that is under way at the end is given up and leaves no step", "[background]") {
  const ScratchFolder scratch;
  save_at_once(scratch / "c", 10);
  comm::run_ranks(ranks, [&](comm::Communicator& world) {
    const RankState state(small_model(), all_cuts()[3].cut, world.rank(), ranks, true);
    const io::CheckpointStore store(scratch / "c", options);
    io::BackgroundSaver saver(store, state.layouts, world);
    saver.begin(request_of(state, 20), world);
  });
  comm::run_ranks(1, [&](comm::Communicator& world) {
    const io::CheckpointStore store(scratch / "c");
    CHECK(io::list_steps(scratch / "c") == std::vector<std::int64_t>{10});
    store.sweep_leftovers(world);
  });
  CHECK(names(scratch / "c") == std::vector<std::string>{"LATEST", "step-000000010"});
}

TEST_CASE("replicas that differ are named before the state is copied", "[background]") {
  const ScratchFolder scratch;
  std::atomic<int> named{0};
  comm::run_ranks(ranks, [&](comm::Communicator& world) {
    RankState state(small_model(), all_cuts()[0].cut, world.rank(), ranks, true);
    if (world.rank() == 1) {
      overwrite(state);
    }
    const io::CheckpointStore store(scratch / "c", options);
    io::BackgroundSaver saver(store, state.layouts, world);
    try {
      saver.begin(request_of(state, 20), world);
    } catch (const SystemError& error) {
      named += !saver.is_busy() && std::string(error.what()).find("on rank 1") != std::string::npos
                   ? 1
                   : 0;
    }
  });
  CHECK(named == ranks);
}

TEST_CASE("pieces that arrive after begin() are waited for, and may change once they are read",
          "[background]") {
  const ScratchFolder scratch;
  for (const NamedCut& cut : all_cuts()) {
    CAPTURE(cut.name);
    const fs::path direct = scratch / ("direct-" + cut.name);
    const fs::path background = scratch / ("background-" + cut.name);
    std::atomic<int> reports{0};
    comm::run_ranks(ranks, [&](comm::Communicator& world) {
      save_as(direct, cut, ranks, 10, world, options);
      save_as(direct, cut, ranks, 20, world, options);
      const RankState original(small_model(), cut.cut, world.rank(), ranks, true);
      RankState state(small_model(), cut.cut, world.rank(), ranks, true);
      const io::CheckpointStore store(background, options);
      io::BackgroundSaver saver(store, original.layouts, world);
      saver.wait_until_read();  // nothing is under way
      for (const std::int64_t step : {10, 20}) {
        overwrite(state);
        std::atomic<bool> is_there{false};
        io::SaveRequest request = request_of(state, step);
        request.has_arrived = [&] { return is_there.load(); };
        saver.begin(request, world);
        arrive(state, original);
        is_there = true;
        saver.wait_until_read();
        overwrite(state);
        reports += saver.finish(world).has_value() ? 1 : 0;
      }
    });
    REQUIRE(reports == 2 * ranks);
    REQUIRE(same_files(direct / "step-000000010", background / "step-000000010"));
    REQUIRE(same_files(direct / "step-000000020", background / "step-000000020"));
  }
}

TEST_CASE("replicas that arrive and differ are named before the step is published",
          "[background]") {
  const ScratchFolder scratch;
  save_at_once(scratch / "c", 10);
  std::atomic<int> named{0};
  comm::run_ranks(ranks, [&](comm::Communicator& world) {
    RankState state(small_model(), all_cuts()[0].cut, world.rank(), ranks, true);
    if (world.rank() == 1) {
      overwrite(state);
    }
    const io::CheckpointStore store(scratch / "c", options);
    io::BackgroundSaver saver(store, state.layouts, world);
    io::SaveRequest request = request_of(state, 20);
    request.has_arrived = [] { return true; };
    saver.begin(request, world);
    try {
      saver.finish(world);
    } catch (const SystemError& error) {
      named += !saver.is_busy() && std::string(error.what()).find("on rank 1") != std::string::npos
                   ? 1
                   : 0;
    }
  });
  CHECK(named == ranks);
  CHECK(names(scratch / "c") == std::vector<std::string>{"LATEST", "step-000000010"});
}

TEST_CASE("pieces that never arrive hold nobody up", "[background]") {
  const ScratchFolder scratch;
  save_at_once(scratch / "c", 10);
  std::atomic<int> told{0};
  comm::run_ranks(ranks, [&](comm::Communicator& world) {
    const RankState state(small_model(), all_cuts()[3].cut, world.rank(), ranks, true);
    const io::CheckpointStore store(scratch / "c", options);
    io::BackgroundSaver saver(store, state.layouts, world);
    io::SaveRequest request = request_of(state, 20);
    const bool breaks = world.rank() == 2;  // as a device does
    request.has_arrived = [breaks]() -> bool {
      return breaks ? throw SystemError(ExitCode::node_fault, "the device is lost") : true;
    };
    saver.begin(request, world);
    saver.wait_until_read();
    try {
      saver.finish(world);
    } catch (const Error& error) {
      told += error.code() == ExitCode::node_fault &&
                      std::string(error.what()).find("the device is lost") != std::string::npos
                  ? 1
                  : 0;
    }
    request.has_arrived = [] { return false; };
    saver.begin(request, world);  // and is given up
  });
  CHECK(told == ranks);
  comm::run_ranks(1, [&](comm::Communicator& world) {
    io::CheckpointStore(scratch / "c").sweep_leftovers(world);
  });
  CHECK(names(scratch / "c") == std::vector<std::string>{"LATEST", "step-000000010"});
}
