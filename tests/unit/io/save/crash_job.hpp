// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Jobs that are stopped, or whose calls fail, at a given one of the calls that change the file
/// system (crash_shim.cpp).
#pragma once

#include "child_process.hpp"
#include "copied_run.hpp"
#include "scratch_folder.hpp"
#include "source_folder.hpp"

#include <catch2/catch_test_macros.hpp>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace fourfold::io_test {

/// The program of a job, and the library that is preloaded into it.
inline std::string crash_program(const std::string& name) {
  return harness::build_folder() + "/bin/crash_" + name;
}
inline std::string crash_shim() {
  return harness::build_folder() + "/tests/libcrash_shim.so";
}

/// The exit code of a job that the shim stops.
inline constexpr int killed = 99;

/// What happens to a job's calls.
struct Disturbance {
  long at = 0;                       ///< the call, from 1; 0: to none
  std::string how = {};              ///< as FOURFOLD_CRASH_HOW
  std::filesystem::path count = {};  ///< how many there were goes into this file
};

/// @param under  only calls below this folder count
inline harness::ChildResult run_disturbed(const std::vector<std::string>& command,
                                          const std::filesystem::path& under,
                                          const Disturbance& disturbance) {
  return harness::run_child(command, {{"LD_PRELOAD", crash_shim()},
                                      {"FOURFOLD_CRASH_UNDER", under.string()},
                                      {"FOURFOLD_CRASH_AT", std::to_string(disturbance.at)},
                                      {"FOURFOLD_CRASH_HOW", disturbance.how},
                                      {"FOURFOLD_CRASH_COUNT", disturbance.count.string()}});
}

/// What a job finds when it starts, the same for each attempt at it.
class Attempts {
 public:
  using Job = std::function<harness::ChildResult(const std::filesystem::path&, const Disturbance&)>;

  /// What is put in here each attempt finds.
  std::filesystem::path original() const { return *scratch_ / "original"; }
  /// Counts the calls of the job when nothing disturbs it. @return the folder as it leaves it
  std::filesystem::path rehearse(const Job& job) {
    const std::filesystem::path folder = fresh();
    REQUIRE(job(folder, {.count = *scratch_ / "count"}).exit_code == 0);
    calls_ = std::stol(harness::read_bytes(*scratch_ / "count"));
    return folder;
  }
  long calls() const { return calls_; }
  /// The folder of an attempt, as the original is.
  std::filesystem::path fresh() const {
    std::filesystem::remove_all(*scratch_ / "work");
    harness::copy_run(original(), *scratch_ / "work");
    return *scratch_ / "work";
  }

 private:
  std::unique_ptr<harness::ScratchFolder> scratch_ = std::make_unique<harness::ScratchFolder>();
  long calls_ = 0;
};

}  // namespace fourfold::io_test
