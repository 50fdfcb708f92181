// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// A save (with retention) that dies, or whose calls fail, at every single call that changes the
/// file system: afterwards the previous or the new step is there, complete.
#include "captured_log.hpp"
#include "child_process.hpp"
#include "position_coded_state.hpp"
#include "scratch_folder.hpp"

#include <fourfold/comm/thread_group.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <atomic>
#include <cerrno>
#include <utility>

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
    found.wrong = state.wrong_elements();
  });
  found.log = log.text();
  return found;
}

/// A directory with step 10, copied anew for each attempt.
class Directory {
 public:
  explicit Directory(int files = own_files) {
    REQUIRE(save(scratch_ / "original", 10).exit_code == 0);
    REQUIRE(save(scratch_ / "probe", 10).exit_code == 0);
    REQUIRE(save(scratch_ / "probe", 20, 0, "", scratch_ / "count", files).exit_code == 0);
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

TEST_CASE(
    "killed before or after any call of a save, the previous or the new step is there whole") {
  const int files = GENERATE(own_files, shared_file);
  const Directory directory(files);
  REQUIRE(directory.calls() > 30);
  std::int64_t previous = 0;
  std::int64_t next = 0;
  // What "after" leaves is what "before" the next call leaves, but for what other ranks do
  // meanwhile.
  for (const auto& [how, stride] : {std::pair{"before", 1L}, std::pair{"after", 7L}}) {
    for (long at = 1; at <= directory.calls(); at += stride) {
      CAPTURE(how, at);
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
  }
  CHECK(previous > 20);
  CHECK(next > 5);
}

TEST_CASE("interrupted and short calls are gone on with; failing ones end in exit code 73") {
  const Directory directory;
  struct Way {
    std::string how;
    bool may_fail;
    long stride;  ///< every call for one error; the others take the same paths
  };
  const std::vector<Way> ways = {{"short", false, 2},
                                 {std::to_string(ENOSPC), true, 1},
                                 {std::to_string(EIO), true, 5},
                                 {std::to_string(EDQUOT), true, 11}};
  std::int64_t refused = 0;
  for (const Way& way : ways) {
    for (long at = 1; at <= directory.calls(); at += way.stride) {
      CAPTURE(way.how, at);
      const fs::path work = directory.fresh();
      const ChildResult result = save(work, 20, at, way.how);
      CAPTURE(result.output);
      REQUIRE((result.exit_code == 0 || (way.may_fail && result.exit_code == 73)));
      const Found found = restore(work);
      REQUIRE(found.wrong == 0);
      REQUIRE(found.log.empty());
      if (result.exit_code == 0) {
        REQUIRE(found.step == 20);
        continue;
      }
      ++refused;
      REQUIRE(result.output.find("cannot be written") != std::string::npos);
      REQUIRE(result.output.find(work.string()) != std::string::npos);
      REQUIRE((found.step == 10 || found.step == 20));
      REQUIRE(fs::exists(work / "step-000000010"));
    }
  }
  CHECK(refused > 20);
}

TEST_CASE("calls that are interrupted are made again") {
  const Directory directory;
  for (long at = 1; at <= directory.calls(); at += 2) {
    CAPTURE(at);
    const fs::path work = directory.fresh();
    const ChildResult result = save(work, 20, at, "again");
    CAPTURE(result.output);
    // mkdir, rename, unlink and rmdir are not interrupted by signals; were they, it is an error.
    REQUIRE((result.exit_code == 0 || result.exit_code == 73));
    REQUIRE(restore(work).wrong == 0);
  }
}
