// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Cutting a checkpoint anew that dies, or whose calls fail, at every single call that changes the
/// file system: the step is there complete or not at all, the same command completes it, and the
/// original is as it was.
#include "save/crash_job.hpp"
#include "save/position_coded_state.hpp"
#include "scratch_folder.hpp"

#include <fourfold/comm/thread_group.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cerrno>
#include <map>

using namespace fourfold;
using namespace fourfold::io_test;
using harness::ChildResult;
using harness::files_below;
using harness::read_bytes;
using harness::ScratchFolder;
namespace fs = std::filesystem;

namespace {

constexpr int processes = 2;
constexpr const char* step_name = "step-000000010";

/// A checkpoint of two ranks, and what becomes of it undisturbed.
class Resharding {
 public:
  Resharding() {
    comm::run_ranks(2, [&](comm::Communicator& world) {
      save_as(from(), all_cuts()[1], 2, 10, world,
              {.keep_last = 0, .plan = {.smallest_part_bytes = 8}}, {.model = tiny_model()});
    });
    REQUIRE(reshard({.count = scratch_ / "count"}).exit_code == 0);
    calls_ = std::stol(read_bytes(scratch_ / "count"));
    original_ = files_below(from());
    whole_ = files_below(to());
    REQUIRE(files_below(to() / step_name).size() == 4);  // manifest, index, two payloads
  }

  long calls() const { return calls_; }
  fs::path from() const { return scratch_ / "from"; }
  fs::path to() const { return scratch_ / "to"; }

  ChildResult reshard(const Disturbance& disturbance = {}) const {
    return run_disturbed(
        {crash_program("resharder"), from().string(), to().string(), std::to_string(processes)},
        to(), disturbance);
  }

  /// @return whether the step is there; it is complete then
  bool is_there() const {
    REQUIRE(files_below(from()) == original_);
    if (!fs::exists(to() / step_name)) {
      return false;
    }
    for (const auto& [name, bytes] : files_below(to() / step_name)) {
      REQUIRE(whole_.at(std::string(step_name) + "/" + name) == bytes);
    }
    REQUIRE(files_below(to() / step_name).size() == 4);
    return true;
  }

  /// The same command, undisturbed, after one that was not.
  void complete() const {
    const ChildResult again = reshard();
    CAPTURE(again.output);
    REQUIRE(again.exit_code == 0);
    std::map<std::string, std::string> left = files_below(to());
    std::erase_if(left, [](const auto& file) {  // what the next run sweeps
      return file.first.starts_with(".LATEST.tmp-") || file.first.starts_with(".lease-");
    });
    REQUIRE(left == whole_);
    REQUIRE(files_below(from()) == original_);
  }

 private:
  ScratchFolder scratch_;
  long calls_ = 0;
  std::map<std::string, std::string> original_;
  std::map<std::string, std::string> whole_;
};

}  // namespace

TEST_CASE("killed at any call, one rank or all, cutting anew has left nothing or the whole step") {
  const Resharding resharding;
  REQUIRE(resharding.calls() > 60);
  for (const char* how : {"before", "after", "alone"}) {
    long nothing = 0;
    long whole = 0;
    for (long at = 1; at <= resharding.calls(); ++at) {
      CAPTURE(how, at);
      fs::remove_all(resharding.to());
      REQUIRE(resharding.reshard({at, how}).exit_code == killed);
      ++(resharding.is_there() ? whole : nothing);
      resharding.complete();
    }
    CHECK(nothing + whole == resharding.calls());
    CHECK(nothing > 50);
    CHECK(whole > 3);
  }
}

TEST_CASE("failing calls end cutting anew with exit code 73, and the same command goes on") {
  const Resharding resharding;
  for (const int error : {ENOSPC, EIO, EDQUOT}) {
    long refused = 0;
    long silent = 0;
    for (long at = 1; at <= resharding.calls(); ++at) {
      CAPTURE(error, at);
      fs::remove_all(resharding.to());
      const ChildResult result = resharding.reshard({at, std::to_string(error)});
      CAPTURE(result.output);
      const bool is_there = resharding.is_there();
      if (result.exit_code == 73) {
        ++refused;
        REQUIRE(result.output.find("cannot be written") != std::string::npos);
        REQUIRE(result.output.find(resharding.to().string()) != std::string::npos);
      } else {
        REQUIRE(result.exit_code == 0);
        REQUIRE(is_there);
        silent += result.output.find("the checkpoint is saved, but") == std::string::npos ? 1 : 0;
      }
      resharding.complete();
    }
    CHECK(refused > resharding.calls() * 3 / 4);
    CHECK(silent <= 5);  // names that the lease has done with, and its folder
  }
}

TEST_CASE("interrupted and short calls do not disturb cutting anew") {
  const Resharding resharding;
  for (const char* how : {"short", "again"}) {
    for (long at = 1; at <= resharding.calls(); ++at) {
      CAPTURE(how, at);
      fs::remove_all(resharding.to());
      const ChildResult result = resharding.reshard({at, how});
      CAPTURE(result.output);
      // mkdir, rename, unlink and rmdir are not interrupted by signals; were they, it is an error.
      REQUIRE((result.exit_code == 0 || (std::string(how) == "again" && result.exit_code == 73)));
      REQUIRE(resharding.is_there() == (result.exit_code == 0));
      resharding.complete();
    }
  }
}
