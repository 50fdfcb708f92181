// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// A repair of index and manifest that dies, or whose calls fail, at every single call that changes
/// the file system: each file is as it was or as it was saved, and the next repair completes it.
#include "repaired_step.hpp"
#include "save/crash_job.hpp"

#include <catch2/catch_test_macros.hpp>

#include <cerrno>

using namespace fourfold;
using namespace fourfold::io_test;
using harness::ChildResult;
using harness::files_below;
using harness::read_bytes;
using harness::ScratchFolder;
using harness::write_bytes;
namespace fs = std::filesystem;

namespace {

/// A checkpoint whose index is cut and whose manifest is lost or has a flipped bit.
class Repairing {
 public:
  explicit Repairing(bool has_manifest) {
    save_case(scratch_ / "whole", {.ranks = 2, .values = {.model = tiny_model()}});
    whole_ = files_below(scratch_ / "whole");
    fs::copy(scratch_ / "whole", scratch_ / "damaged", fs::copy_options::recursive);
    const fs::path step = scratch_ / "damaged/step-000000010";
    fs::resize_file(step / "index.h5", 1000);
    if (has_manifest) {
      std::string text = read_bytes(step / "MANIFEST.json");
      text[30] ^= 1;
      write_bytes(step / "MANIFEST.json", text);
    } else {
      fs::remove(step / "MANIFEST.json");
    }
    damaged_ = files_below(scratch_ / "damaged");
    damage_again();
    REQUIRE(repair({.count = scratch_ / "count"}).exit_code == 0);
    REQUIRE(files_below(work()) == whole_);
    calls_ = std::stol(read_bytes(scratch_ / "count"));
  }

  long calls() const { return calls_; }
  fs::path work() const { return scratch_ / "work"; }

  void damage_again() const {
    fs::remove_all(work());
    fs::copy(scratch_ / "damaged", work(), fs::copy_options::recursive);
  }

  ChildResult repair(const Disturbance& disturbance = {}) const {
    return run_disturbed({crash_program("repairer"), (work() / "step-000000010").string()}, work(),
                         disturbance);
  }

  /// Whether the step is whole; if not, every file is as it was or as it is to be, the index first.
  bool is_whole() const {
    const auto step = files_below(work() / "step-000000010");
    for (const auto& [name, bytes] : step) {
      const std::string path = "step-000000010/" + name;
      const auto before = damaged_.find(path);
      REQUIRE((bytes == whole_.at(path) || (before != damaged_.end() && bytes == before->second)));
    }
    const auto is_good = [&](const char* name) {
      return step.contains(name) &&
             step.at(name) == whole_.at(std::string("step-000000010/") + name);
    };
    REQUIRE((!is_good("MANIFEST.json") || is_good("index.h5")));
    return is_good("MANIFEST.json");
  }

  /// The same command, undisturbed, after one that was not; then a job that saves here begins.
  void complete() const {
    const ChildResult again = repair();
    CAPTURE(again.output);
    REQUIRE(again.exit_code == 0);
    comm::run_ranks(
        1, [&](comm::Communicator& self) { io::CheckpointStore(work()).sweep_leftovers(self); });
    auto left = files_below(work());
    std::erase_if(left, [](const auto& file) { return file.first.starts_with(".lease"); });
    REQUIRE(left == whole_);
  }

 private:
  ScratchFolder scratch_;
  long calls_ = 0;
  std::map<std::string, std::string> whole_;
  std::map<std::string, std::string> damaged_;
};

}  // namespace

TEST_CASE("killed at any call, a repair can be made again") {
  for (const bool has_manifest : {false, true}) {
    const Repairing repairing(has_manifest);
    REQUIRE(repairing.calls() > 12);
    for (const char* how : {"before", "after"}) {
      long damaged = 0;
      long whole = 0;
      for (long at = 1; at <= repairing.calls(); ++at) {
        CAPTURE(has_manifest, how, at);
        repairing.damage_again();
        REQUIRE(repairing.repair({at, how}).exit_code == killed);
        ++(repairing.is_whole() ? whole : damaged);
        repairing.complete();
      }
      CHECK(damaged + whole == repairing.calls());
      CHECK(damaged > 8);
      CHECK(whole > 2);
    }
  }
}

TEST_CASE("failing calls end a repair with exit code 73, and no file is half of one") {
  const Repairing repairing(true);
  for (const int error : {ENOSPC, EIO, EDQUOT}) {
    long refused = 0;
    for (long at = 1; at <= repairing.calls(); ++at) {
      CAPTURE(error, at);
      repairing.damage_again();
      const ChildResult result = repairing.repair({at, std::to_string(error)});
      CAPTURE(result.output);
      const bool is_whole = repairing.is_whole();
      if (result.exit_code == 73) {
        ++refused;
        REQUIRE(result.output.find("cannot be written") != std::string::npos);
        REQUIRE(result.output.find(repairing.work().string()) != std::string::npos);
      } else {
        REQUIRE(result.exit_code == 0);
        REQUIRE(is_whole);
      }
      for (const auto& [name, bytes] : files_below(repairing.work())) {
        REQUIRE_FALSE(name.starts_with(".tmp-"));
      }
      repairing.complete();
    }
    CHECK(refused > 10);
  }
}

TEST_CASE("interrupted and short calls do not disturb a repair") {
  const Repairing repairing(false);
  for (const char* how : {"short", "again"}) {
    for (long at = 1; at <= repairing.calls(); ++at) {
      CAPTURE(how, at);
      repairing.damage_again();
      const ChildResult result = repairing.repair({at, how});
      CAPTURE(result.output);
      // rename and unlink are not interrupted by signals; were they, it is an error.
      REQUIRE((result.exit_code == 0 || (std::string(how) == "again" && result.exit_code == 73)));
      REQUIRE((repairing.is_whole() || result.exit_code == 73));
      repairing.complete();
    }
  }
}
