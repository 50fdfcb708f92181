// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// A save (with retention of two older steps) that dies, or whose calls fail, at every single call
/// that changes the file system: afterwards the previous or the new step is there, complete, and
/// nothing of one in the other.
#include "captured_log.hpp"
#include "child_process.hpp"
#include "position_coded_state.hpp"
#include "scratch_folder.hpp"

#include <fourfold/comm/thread_group.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cerrno>

using namespace fourfold;
using namespace fourfold::io_test;
using harness::ChildResult;
using harness::read_bytes;
using harness::ScratchFolder;
namespace fs = std::filesystem;

namespace {

constexpr int killed = 99;
constexpr int ranks = 2;

/// The files of a step: one for each of two ranks, or one that they share.
constexpr int own_files = ranks;
constexpr int shared_file = 1;

ChildResult save(const fs::path& directory, std::int64_t step, long at = 0,
                 const std::string& how = "", const fs::path& count = {}, int files = own_files) {
  return harness::run_child({FOURFOLD_CRASH_SAVER, directory.string(), std::to_string(step),
                             std::to_string(ranks), std::to_string(files)},
                            {{"LD_PRELOAD", FOURFOLD_CRASH_SHIM},
                             {"FOURFOLD_CRASH_UNDER", directory.string()},
                             {"FOURFOLD_CRASH_AT", std::to_string(at)},
                             {"FOURFOLD_CRASH_HOW", how},
                             {"FOURFOLD_CRASH_COUNT", count.string()}});
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
    const io::CheckpointStore store(directory);
    const auto checkpoint = store.restore(state.wanted, world);
    found.step = checkpoint ? checkpoint->step() : -1;
    found.wrong = state.wrong_elements(static_cast<std::uint64_t>(found.step));
  });
  found.log = log.text();
  return found;
}

/// A directory with the steps 5 and 10, copied anew for each attempt.
class Directory {
 public:
  explicit Directory(int files = own_files) {
    REQUIRE(save(scratch_ / "original", 10).exit_code == 0);
    REQUIRE(save(scratch_ / "older", 5).exit_code == 0);
    fs::rename(scratch_ / "older/step-000000005", scratch_ / "original/step-000000005");
    fs::copy(scratch_ / "original", scratch_ / "probe", fs::copy_options::recursive);
    REQUIRE(save(scratch_ / "probe", 20, 0, "", scratch_ / "count", files).exit_code == 0);
    REQUIRE_FALSE(fs::exists(scratch_ / "probe/step-000000005"));
    REQUIRE_FALSE(fs::exists(scratch_ / "probe/step-000000010"));
    calls_ = std::stol(read_bytes(scratch_ / "count"));
  }
  long calls() const { return calls_; }
  fs::path fresh() const {
    fs::remove_all(scratch_ / "work");
    fs::copy(scratch_ / "original", scratch_ / "work", fs::copy_options::recursive);
    return scratch_ / "work";
  }

 private:
  ScratchFolder scratch_;
  long calls_ = 0;
};

}  // namespace

TEST_CASE("killed at any call of a save, one rank or all, the previous or the new step is whole") {
  const int files = GENERATE(own_files, shared_file);
  const std::string how = GENERATE("before", "after", "alone");
  const Directory directory(files);
  REQUIRE(directory.calls() > 40);
  std::int64_t previous = 0;
  std::int64_t next = 0;
  for (long at = 1; at <= directory.calls(); ++at) {
    CAPTURE(files, how, at);
    const fs::path work = directory.fresh();
    REQUIRE(save(work, 20, at, how, {}, files).exit_code == killed);
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
  CHECK(previous + next == directory.calls());
  CHECK(previous > 20);
  CHECK(next > 15);
}

TEST_CASE("failing calls end a save in exit code 73, with the older step intact") {
  const int error = GENERATE(ENOSPC, EIO, EDQUOT);
  const Directory directory;
  std::int64_t refused = 0;
  for (long at = 1; at <= directory.calls(); ++at) {
    CAPTURE(error, at);
    const fs::path work = directory.fresh();
    const ChildResult result = save(work, 20, at, std::to_string(error));
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
  const Directory directory;
  for (long at = 1; at <= directory.calls(); ++at) {
    CAPTURE(how, at);
    const fs::path work = directory.fresh();
    const ChildResult result = save(work, 20, at, how);
    CAPTURE(result.output);
    // mkdir, rename, unlink and rmdir are not interrupted by signals; were they, it is an error.
    REQUIRE((result.exit_code == 0 || (how == "again" && result.exit_code == 73)));
    const Found found = restore(work);
    REQUIRE(found.wrong == 0);
    REQUIRE((found.step == 20 || result.exit_code == 73));
  }
}
