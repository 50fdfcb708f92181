// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
/// @file
/// Fast saves and promotions that die, or whose calls fail, at every single call that changes the
/// file system: a restart has the previous or the new step whole, nothing of one in the other.
#include "captured_log.hpp"
#include "save/crash_job.hpp"
#include "tier_folders.hpp"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>

#include <cerrno>

using namespace fourfold;
using namespace fourfold::io_test;
using harness::ChildResult;
namespace fs = std::filesystem;

namespace {

ChildResult job(const fs::path& root, const std::string& verb,
                const Disturbance& disturbance = {}) {
  return run_disturbed({crash_program("local_tier"), root.string(), verb}, root, disturbance);
}

/// Jobs of a run that was killed with step 5 in the store and step 10 on the node-local tier.
Attempts attempts_at(const std::string& verb) {
  Attempts attempts;
  REQUIRE(job(attempts.original(), "begin").exit_code == 0);
  REQUIRE(job(attempts.original(), "10").exit_code == 0);
  attempts.rehearse([&](const fs::path& root, const Disturbance& disturbance) {
    return job(root, verb, disturbance);
  });
  return attempts;
}

}  // namespace

TEST_CASE(
    "killed at any call of a node-local save, a restart has the previous or the new step whole") {
  const std::string how = GENERATE("before", "after", "alone");
  const Attempts run = attempts_at("20");
  REQUIRE(run.calls() > 60);
  long previous = 0;
  long next = 0;
  for (long at = 1; at <= run.calls(); ++at) {
    CAPTURE(how, at);
    const fs::path work = run.fresh();
    // How many calls there are may differ by a few: ranks may or may not be at one together.
    const ChildResult result = job(work, "20", {at, how});
    REQUIRE((result.exit_code == killed || (result.exit_code == 0 && at > run.calls() - 3)));
    const harness::CapturedLog log;
    const auto found = crash_cluster(work).restart();
    CAPTURE(log.text());
    REQUIRE(found.wrong == 0);
    REQUIRE((found.step == 10 || found.step == 20));
    (found.step == 10 ? previous : next) += 1;
    if (at % 8 == 0) {  // the next job goes on from there
      REQUIRE(job(work, "30").exit_code == 0);
      REQUIRE(crash_cluster(work).restart().step == 30);
    }
  }
  CHECK(previous > 30);
  CHECK(next > 10);
}

TEST_CASE("failing calls leave a node-local save undone, with a warning, and the run goes on") {
  const int error = GENERATE(ENOSPC, EIO, EDQUOT);
  const Attempts run = attempts_at("20");
  long undone = 0;
  for (long at = 1; at <= run.calls(); ++at) {
    CAPTURE(error, at);
    const fs::path work = run.fresh();
    const ChildResult result = job(work, "20", {at, std::to_string(error)});
    CAPTURE(result.output);
    // The first calls are the start's, which tries whether the folders can be written.
    REQUIRE((result.exit_code == 0 || (result.exit_code == 73 && at < 12)));
    undone += result.output.find("step 20 is not saved on the node-local tier") == std::string::npos
                  ? 0
                  : 1;
    const harness::CapturedLog log;
    const auto found = crash_cluster(work).restart();
    REQUIRE(found.wrong == 0);
    REQUIRE((found.step == 10 || found.step == 20));
    REQUIRE((found.step == 20 || !result.output.empty()));
  }
  CHECK(undone > 30);
}

TEST_CASE("a promotion that is killed anywhere is made again") {
  const std::string how = GENERATE("before", "after", "alone");
  const Attempts run = attempts_at("promote");
  REQUIRE(run.calls() > 20);
  long there = 0;
  for (long at = 1; at <= run.calls(); ++at) {
    CAPTURE(how, at);
    const fs::path work = run.fresh();
    const ChildResult result = job(work, "promote", {at, how});
    REQUIRE((result.exit_code == killed || (result.exit_code == 0 && at > run.calls() - 3)));
    there += fs::exists(work / "checkpoints/step-000000010") ? 1 : 0;
    const harness::CapturedLog log;
    const auto found = crash_cluster(work).restart();
    REQUIRE(found.step == 10);
    REQUIRE(found.wrong == 0);
    REQUIRE(log.text().empty());
  }
  CHECK(there > 3);
  CHECK(there < run.calls() - 10);
}

TEST_CASE("failing calls end a promotion with exit code 73, and the next start makes it") {
  const int error = GENERATE(ENOSPC, EIO, EDQUOT);
  const Attempts run = attempts_at("promote");
  long refused = 0;
  for (long at = 1; at <= run.calls(); ++at) {
    CAPTURE(error, at);
    const fs::path work = run.fresh();
    const ChildResult result = job(work, "promote", {at, std::to_string(error)});
    CAPTURE(result.output);
    REQUIRE((result.exit_code == 0 || result.exit_code == 73));
    refused += result.exit_code == 73 ? 1 : 0;
    const auto found = crash_cluster(work).restart();
    REQUIRE(found.step == 10);
    REQUIRE(found.wrong == 0);
  }
  CHECK(refused > 15);
}

TEST_CASE(
    "a start that is killed anywhere leaves nothing behind that the next does not take away") {
  const std::string how = GENERATE("before", "after", "alone");
  const Attempts run = attempts_at("go-on");
  REQUIRE(run.calls() > 40);
  for (long at = 1; at <= run.calls(); ++at) {
    CAPTURE(how, at);
    const fs::path work = run.fresh();
    const ChildResult result = job(work, "go-on", {at, how});
    REQUIRE((result.exit_code == killed || (result.exit_code == 0 && at > run.calls() - 3)));
    REQUIRE(job(work, "go-on").exit_code == 0);
    REQUIRE(names(work / "checkpoints") ==
            std::vector<std::string>{".fast-level", "LATEST", "step-000000005", "step-000000010"});
    for (const char* const node : {"node0", "node1"}) {
      for (const std::string& name : names(work / node)) {  // what the first looked for with
        REQUIRE(name.starts_with(".probe-"));
      }
    }
    const harness::CapturedLog log;
    const auto found = crash_cluster(work).restart();
    REQUIRE(found.step == 10);
    REQUIRE(found.wrong == 0);
  }
}
