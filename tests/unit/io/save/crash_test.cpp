// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// A save (with retention of two older steps) that dies, or whose calls fail, at every single call
/// that changes the file system: afterwards the previous or the new step is there, complete, and
/// nothing of one in the other.
#include "captured_log.hpp"
#include "crash_job.hpp"
#include "position_coded_state.hpp"
#include "scratch_folder.hpp"

#include <fourfold/comm/thread_group.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cerrno>

using namespace fourfold;
using namespace fourfold::io_test;
using harness::ChildResult;
using harness::ScratchFolder;
namespace fs = std::filesystem;

namespace {

constexpr int ranks = 2;

/// The files of a step: one for each of two ranks, or one that they share.
constexpr int own_files = ranks;
constexpr int shared_file = 1;

ChildResult save(const fs::path& directory, std::int64_t step, int files = own_files,
                 const Disturbance& disturbance = {}) {
  return run_disturbed({crash_program("saver"), directory.string(), std::to_string(step),
                        std::to_string(ranks), std::to_string(files)},
                       directory, disturbance);
}

struct Found {
  std::int64_t step = -1;
  std::int64_t wrong = 0;
  std::string log;
};

Found restore(const fs::path& directory) {
  const harness::CapturedLog log;
  Found found;
  comm::run_ranks(1, [&](comm::Communicator& world) {
    RankState state(small_model(), all_cuts()[0].cut, 0, 1, false);
    io::CheckpointStore store(directory);
    const auto checkpoint = store.restore(state.wanted, world);
    found.step = checkpoint ? checkpoint->step() : -1;
    found.wrong = state.wrong_elements(static_cast<std::uint64_t>(found.step));
  });
  found.log = log.text();
  return found;
}

/// Saves of step 20 in a directory with the steps 5 and 10.
Attempts attempts_at_saving(int files = own_files) {
  Attempts attempts;
  const ScratchFolder older;
  REQUIRE(save(attempts.original(), 10).exit_code == 0);
  REQUIRE(save(older.path(), 5).exit_code == 0);
  fs::copy(older / "step-000000005", attempts.original() / "step-000000005");
  const fs::path saved =
      attempts.rehearse([&](const fs::path& directory, const Disturbance& disturbance) {
        return save(directory, 20, files, disturbance);
      });
  REQUIRE_FALSE(fs::exists(saved / "step-000000005"));
  REQUIRE_FALSE(fs::exists(saved / "step-000000010"));
  return attempts;
}

}  // namespace

TEST_CASE("killed at any call of a save, one rank or all, the previous or the new step is whole") {
  const int files = GENERATE(own_files, shared_file);
  const std::string how = GENERATE("before", "after", "alone");
  const Attempts attempts = attempts_at_saving(files);
  REQUIRE(attempts.calls() > 40);
  std::int64_t previous = 0;
  std::int64_t next = 0;
  for (long at = 1; at <= attempts.calls(); ++at) {
    CAPTURE(files, how, at);
    const fs::path work = attempts.fresh();
    REQUIRE(save(work, 20, files, {at, how}).exit_code == killed);
    const Found found = restore(work);
    REQUIRE(found.wrong == 0);
    REQUIRE(found.log.empty());  // nothing that looks like a step is ever incomplete
    REQUIRE((found.step == 10 || found.step == 20));
    (found.step == 10 ? previous : next) += 1;
    if (at % 8 == 0) {  // the next job goes on from there
      REQUIRE(save(work, 30).exit_code == 0);
      REQUIRE(restore(work).step == 30);
    }
  }
  CHECK(previous + next == attempts.calls());
  CHECK(previous > 20);
  CHECK(next > 15);
}

TEST_CASE("failing calls end a save in exit code 73, with the older step intact") {
  const int error = GENERATE(ENOSPC, EIO, EDQUOT);
  const Attempts attempts = attempts_at_saving();
  std::int64_t refused = 0;
  for (long at = 1; at <= attempts.calls(); ++at) {
    CAPTURE(error, at);
    const fs::path work = attempts.fresh();
    const ChildResult result = save(work, 20, own_files, {at, std::to_string(error)});
    CAPTURE(result.output);
    REQUIRE((result.exit_code == 0 || result.exit_code == 73));
    const Found found = restore(work);
    REQUIRE(found.wrong == 0);
    REQUIRE(found.log.empty());
    if (result.exit_code == 0) {
      REQUIRE(found.step == 20);
      REQUIRE(result.output.find("the checkpoint is saved, but") != std::string::npos);
      continue;
    }
    ++refused;
    REQUIRE(result.output.find("cannot be written") != std::string::npos);
    REQUIRE(result.output.find(work.string()) != std::string::npos);
    REQUIRE((found.step == 10 || found.step == 20));
    REQUIRE(fs::exists(work / "step-000000010"));
  }
  CHECK(refused > 20);
}

TEST_CASE("interrupted and short calls are gone on with") {
  const std::string how = GENERATE("short", "again");
  const Attempts attempts = attempts_at_saving();
  for (long at = 1; at <= attempts.calls(); ++at) {
    CAPTURE(how, at);
    const fs::path work = attempts.fresh();
    const ChildResult result = save(work, 20, own_files, {at, how});
    CAPTURE(result.output);
    // mkdir, rename, unlink and rmdir are not interrupted by signals; were they, it is an error.
    REQUIRE((result.exit_code == 0 || (how == "again" && result.exit_code == 73)));
    const Found found = restore(work);
    REQUIRE(found.wrong == 0);
    REQUIRE((found.step == 20 || result.exit_code == 73));
  }
}
