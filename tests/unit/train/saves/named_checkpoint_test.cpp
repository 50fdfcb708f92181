// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "scratch_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/train/load_run.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_exception.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <filesystem>
#include <fstream>
#include <string>

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;
using fourfold::UserError;
using fourfold::harness::ScratchFolder;
using fourfold::train::checkpoints_named;
namespace fs = std::filesystem;

namespace {

/// A run as it lies there; what is in its steps nobody looks at here.
void make_run(const fs::path& log_dir, const fs::path& steps, const std::string& config) {
  fs::create_directories(steps / "step-000000010");
  fs::create_directories(log_dir);
  std::ofstream(log_dir / "config.toml") << config;
}

std::string config_of(const fs::path& log_dir, const fs::path& steps) {
  return "[log]\ndir = \"" + log_dir.string() + "\"\n[checkpoint]\ndir = \"" + steps.string() +
         "\"\n";
}

}  // namespace

TEST_CASE("a step, a folder of steps, a run and its run file mean the same", "[named_checkpoint]") {
  const ScratchFolder scratch;
  const fs::path run = scratch / "run";
  const fs::path steps = run / "checkpoints";
  make_run(run, steps, config_of(run, steps));
  CHECK(checkpoints_named(steps / "step-000000010") == steps / "step-000000010");
  CHECK(checkpoints_named(steps) == steps);
  CHECK(checkpoints_named(run) == steps);
  CHECK(checkpoints_named(run / "config.toml") == steps);
  fs::create_directory_symlink("run", scratch / "link");
  CHECK(fs::equivalent(checkpoints_named(scratch / "link"), steps));
  std::ofstream(scratch / "run.toml") << "[log]\ndir = \"" << run.string() << "\"\n";
  CHECK(checkpoints_named(scratch / "run.toml") == steps);
}

TEST_CASE("of a run whose steps lie elsewhere its config.toml says where", "[named_checkpoint]") {
  const ScratchFolder scratch;
  make_run(scratch / "run", scratch / "far", config_of(scratch / "run", scratch / "far"));
  CHECK(checkpoints_named(scratch / "run") == scratch / "far");
  // Also when it has steps beside it: of an earlier run there.
  fs::create_directories(scratch / "run/checkpoints/step-000000002");
  CHECK(checkpoints_named(scratch / "run") == scratch / "far");
}

TEST_CASE("of a copy the steps beside it are meant, not the original's", "[named_checkpoint]") {
  const ScratchFolder scratch;
  make_run(scratch / "run", scratch / "run/checkpoints",
           config_of(scratch / "run", scratch / "run/checkpoints"));
  fs::copy(scratch / "run", scratch / "copy", fs::copy_options::recursive);
  CHECK(checkpoints_named(scratch / "copy") == scratch / "copy/checkpoints");
  CHECK(checkpoints_named(scratch / "copy/config.toml") == scratch / "copy/checkpoints");
  fs::remove_all(scratch / "copy/checkpoints");
  CHECK(checkpoints_named(scratch / "copy") == scratch / "run/checkpoints");
  make_run(scratch / "away", scratch / "unused", config_of("gone", "gone/steps"));
  CHECK_THROWS_MATCHES(checkpoints_named(scratch / "away"), UserError,
                       MessageMatches(ContainsSubstring("whose checkpoint.dir was gone/steps")));
}

TEST_CASE("latest is the folder of steps, best needs a noted loss", "[named_checkpoint]") {
  const ScratchFolder scratch;
  const fs::path run = scratch / "run";
  make_run(run, run / "checkpoints", config_of(run, run / "checkpoints"));
  CHECK(checkpoints_named(run.string() + ":latest") == run / "checkpoints");
  CHECK_THROWS_MATCHES(checkpoints_named(run.string() + ":best"), UserError,
                       MessageMatches(ContainsSubstring("notes a validation loss")));
  CHECK_THROWS_MATCHES(checkpoints_named((scratch / "none").string() + ":best"), UserError,
                       MessageMatches(ContainsSubstring("there is no such folder or file")));
  // A folder may be called so.
  make_run(scratch / "run:best", scratch / "run:best/checkpoints", "");
  CHECK(checkpoints_named(scratch / "run:best") == scratch / "run:best/checkpoints");
}

TEST_CASE("what is no checkpoint is refused with what would be one", "[named_checkpoint]") {
  const ScratchFolder scratch;
  fs::create_symlink("nowhere", scratch / "link");
  std::ofstream(scratch / "text") << "not = [ toml";
  const auto refusal_of = [](const std::string& path) -> std::string {
    try {
      return "taken: " + checkpoints_named(path).string();
    } catch (const UserError& error) {
      return error.what();
    }
  };
  const auto check = [&](const std::string& path, const std::string& why) {
    const std::string said = refusal_of(path);
    CHECK_THAT(said, ContainsSubstring("is no checkpoint (") && ContainsSubstring(why));
    CHECK_THAT(said, ContainsSubstring("name a step, a folder of steps, a run's folder"));
  };
  check(scratch / "none", "there is no such folder or file");
  check(scratch / "link", "it is a link to nowhere, which cannot be reached");
  check(scratch / "text", "no run file");
  check("/dev/null", "neither a folder nor a file");
}
