// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Steps beside others: saved again, saved beside later ones, kept and removed.
#include "captured_log.hpp"
#include "save_attempt.hpp"
#include "scratch_folder.hpp"

#include <fourfold/io/digest.hpp>
#include <fourfold/io/local_tier.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <fmt/format.h>

#include <atomic>
#include <fstream>

using namespace fourfold;
using namespace fourfold::io_test;
using Catch::Matchers::ContainsSubstring;
using harness::ScratchFolder;
namespace fs = std::filesystem;

namespace {

using Names = std::vector<std::string>;

/// What LATEST must say of the step that is there: step, identity, CRC of the manifest's bytes.
std::string latest_of(const fs::path& directory, std::int64_t step) {
  const fs::path folder = directory / fmt::format("step-{:09}", step);
  const std::string manifest = harness::read_bytes(folder / "MANIFEST.json");
  const std::string key = "\"identity\": \"";
  const std::size_t identity = manifest.find(key) + key.size();
  return fmt::format("{} {} {:08x}\n", step, manifest.substr(identity, 32),
                     io::crc32c(std::as_bytes(std::span(manifest))));
}

}  // namespace

TEST_CASE("a step is never overwritten: the same state counts as saved, another is refused") {
  const ScratchFolder scratch;
  const fs::path directory = scratch / "c";
  REQUIRE(try_save(directory, 2, 10).codes == std::vector{0, 0});
  const std::string manifest = harness::read_bytes(directory / "step-000000010/MANIFEST.json");
  CHECK(try_save(directory, 2, 10).codes == std::vector{0, 0});
  CHECK(harness::read_bytes(directory / "LATEST") == latest_of(directory, 10));
  const Outcome other = try_save(directory, 2, 10, [](int, RankState& state) {
    static_cast<std::byte*>(state.wanted[0].data.data())[0] ^= std::byte{1};
  });
  CHECK(other.codes == std::vector{73, 73});
  CHECK_THAT(other.message, ContainsSubstring("exists already with other contents"));
  CHECK(harness::read_bytes(directory / "step-000000010/MANIFEST.json") == manifest);
  CHECK(names(directory) == std::vector<std::string>{"LATEST", "step-000000010"});
}

TEST_CASE("a damaged step makes room for the same step saved anew") {
  const ScratchFolder scratch;
  const fs::path directory = scratch / "c";
  REQUIRE(try_save(directory, 2, 10).codes == std::vector{0, 0});
  fs::resize_file(directory / "step-000000010/index.h5", 100);
  const harness::CapturedLog log;
  CHECK(try_save(directory, 2, 10).codes == std::vector{0, 0});
  CHECK_THAT(log.text(), ContainsSubstring("set aside as damaged-step-000000010-"));
  const auto left = names(directory);
  REQUIRE(left.size() == 3);
  CHECK(left[1].starts_with("damaged-step-000000010-"));
  CHECK(left[2] == "step-000000010");
}

TEST_CASE("a step that a rank could not load makes room even where all find it whole later") {
  const ScratchFolder scratch;
  const fs::path directory = scratch / "c";
  REQUIRE(try_save(directory, 2, 5).codes == std::vector{0, 0});
  REQUIRE(try_save(directory, 2, 10).codes == std::vector{0, 0});
  const harness::CapturedLog log;
  std::atomic<int> right{0};
  comm::run_ranks(2, [&](comm::Communicator& world) {
    const RankState state(small_model(), all_cuts()[0].cut, world.rank(), 2, false);
    io::CheckpointStore store(directory);
    const auto flip = [&] {  // what one rank sees, for a while
      if (world.rank() == 0) {
        const fs::path file = directory / "step-000000010" / "shard-00001-of-00002.h5";
        std::string bytes = harness::read_bytes(file);
        for (std::size_t byte = 0; byte < bytes.size(); byte += 8) {
          bytes[byte] = static_cast<char>(bytes[byte] ^ 1);
        }
        harness::write_bytes(file, bytes);
      }
      world.barrier();
    };
    flip();
    const auto restored = store.restore(state.wanted, world);
    flip();
    io::CheckpointScalars scalars = some_scalars(10);
    scalars.integers["consumed_samples"] += 1;
    const RankState anew(small_model(), all_cuts()[0].cut, world.rank(), 2, true);
    store.save({.step = 10,
                .mesh = {1, 2, 1, 1},
                .scalars = scalars,
                .tensors = anew.layouts,
                .pieces = anew.pieces},
               world);
    right += restored && restored->step() == 5 ? 1 : 0;
  });
  CHECK(right == 2);
  CHECK_THAT(log.text(), ContainsSubstring("set aside as damaged-step-000000010-"));
  CHECK(names(directory).size() == 4);
}

TEST_CASE("a job that has lost its lease sets nothing aside") {
  const ScratchFolder scratch;
  const fs::path directory = scratch / "c";
  REQUIRE(try_save(directory, 2, 10).codes == std::vector{0, 0});
  fs::resize_file(directory / "step-000000010/index.h5", 100);  // as if it had to make way
  fs::create_directories(directory /
                         ".tmp-step-000000020-0123456789abcdef");  // the other one's, by then
  const auto before = harness::files_below(directory / "step-000000010");
  std::atomic<int> refused = 0;
  comm::run_ranks(2, [&](comm::Communicator& world) {
    io::CheckpointStore store(directory, {.keep_last = 0});
    store.take_lease(world);
    if (world.rank() == 0) {
      harness::write_bytes(directory / ".lease",
                           "fourfold-lease 1 fedcba9876543210 elsewhere - 7 - 0 3\n");
    }
    world.barrier();
    RankState state(small_model(), all_cuts()[0].cut, world.rank(), 2, true, 10);
    try {
      store.save({.step = 10,
                  .mesh = {1, 2, 1, 1},
                  .scalars = some_scalars(10),
                  .tensors = state.layouts,
                  .pieces = state.pieces},
                 world);
    } catch (const UserError& error) {
      refused += error.code() == ExitCode::no_progress ? 1 : 0;
    }
    try {
      store.sweep_leftovers(world);
    } catch (const UserError& error) {
      refused += error.code() == ExitCode::no_progress ? 1 : 0;
    }
    try {
      io::forget_local_tier(store, world);
    } catch (const UserError& error) {
      refused += error.code() == ExitCode::no_progress ? 1 : 0;
    }
  });
  CHECK(refused == 6);
  CHECK(fs::exists(directory / ".tmp-step-000000020-0123456789abcdef"));
  CHECK(harness::files_below(directory / "step-000000010") == before);
}

TEST_CASE("only the newest steps are kept, and leftovers are swept") {
  const ScratchFolder scratch;
  const fs::path directory = scratch / "c";
  for (std::int64_t step = 10; step <= 50; step += 10) {
    REQUIRE(try_save(directory, 2, step, {}, 2).codes == std::vector{0, 0});
  }
  CHECK(names(directory) == std::vector<std::string>{"LATEST", "step-000000040", "step-000000050"});
  CHECK(harness::read_bytes(directory / "LATEST").starts_with("50 "));
  fs::create_directories(directory / ".tmp-step-000000060-0123456789abcdef");
  std::ofstream(directory / ".tmp-step-000000060-0123456789abcdef" / "shard-00000-of-00002.h5")
      << "half";
  fs::create_directories(directory / ".trash-0123456789abcdef" / "deep");
  std::ofstream(directory / ".LATEST.tmp-0123456789abcdef") << "50";
  std::ofstream(directory / ".lease-0123456789abcdef") << "of a start that was killed";
  std::ofstream(directory / "..probe-0123456789abcdef.tmp-0123456789abcdef")
      << "of a start that looked";
  std::ofstream(directory / "notes.txt") << "the user's";
  comm::run_ranks(
      2, [&](comm::Communicator& world) { io::CheckpointStore(directory).sweep_leftovers(world); });
  CHECK(names(directory) ==
        std::vector<std::string>{"LATEST", "notes.txt", "step-000000040", "step-000000050"});
}

TEST_CASE("a run that went on from an older step keeps what it saves, and later steps stay") {
  const ScratchFolder scratch;
  const fs::path directory = scratch / "c";
  for (const std::int64_t step : {2, 4, 8}) {
    REQUIRE(try_save(directory, 2, step).codes == std::vector{0, 0});
  }
  const harness::CapturedLog log;
  REQUIRE(try_save(directory, 2, 6, {}, 1).codes == std::vector{0, 0});
  CHECK(names(directory) == Names{"LATEST", "step-000000006", "step-000000008"});
  CHECK(harness::read_bytes(directory / "LATEST") == latest_of(directory, 6));
  CHECK_THAT(log.text(), ContainsSubstring("also holds later steps (step-000000008)"));
  REQUIRE(try_save(directory, 2, 7, {}, 2).codes == std::vector{0, 0});
  CHECK(names(directory) == Names{"LATEST", "step-000000006", "step-000000007", "step-000000008"});
}

TEST_CASE("saving what is there already leaves the step and a LATEST that fits it") {
  const ScratchFolder scratch;
  const fs::path directory = scratch / "c";
  REQUIRE(try_save(directory, 2, 10).codes == std::vector{0, 0});
  CHECK(harness::read_bytes(directory / "LATEST") == latest_of(directory, 10));
  const std::string manifest = harness::read_bytes(directory / "step-000000010/MANIFEST.json");

  // Another run file, and another number of ranks: the state is the same.
  io::CheckpointScalars scalars = some_scalars(10);
  scalars.texts["config.toml"] += "[checkpoint]\nresume = \"step-000000008\"\n";
  CHECK(try_save(directory, 2, 10, {}, 0, &scalars).codes == std::vector{0, 0});
  CHECK(try_save(directory, 3, 10).codes == std::vector{0, 0, 0});
  CHECK(names(directory) == Names{"LATEST", "step-000000010"});
  CHECK(harness::read_bytes(directory / "step-000000010/MANIFEST.json") == manifest);
  CHECK(harness::read_bytes(directory / "LATEST") == latest_of(directory, 10));

  scalars = some_scalars(10);
  scalars.integers["consumed_samples"] += 1;
  CHECK(try_save(directory, 2, 10, {}, 0, &scalars).codes == std::vector{73, 73});
  scalars = some_scalars(10);
  scalars.reals["loss_scale"] /= 2;
  CHECK(try_save(directory, 2, 10, {}, 0, &scalars).codes == std::vector{73, 73});
}
