// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "run/tiny_run.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/comm/thread_group.hpp>
#include <fourfold/telemetry/own_files.hpp>
#include <fourfold/train/first_look.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

using Catch::Matchers::ContainsSubstring;
using fourfold::test::TinyRun;
namespace fs = std::filesystem;

namespace {

/// What each of two ranks is told; empty: nothing is wrong.
std::vector<std::string> look(const fourfold::runfile::RunConfig& config,
                              const std::vector<std::string>& allowed = {}) {
  std::vector<std::string> told(2);
  fourfold::comm::run_ranks(2, [&](fourfold::comm::Communicator& world) {
    try {
      fourfold::train::look_before_lease(config, allowed, world);
    } catch (const fourfold::UserError& error) {
      told[static_cast<std::size_t>(world.rank())] = error.what();
    }
  });
  return told;
}

const std::vector<std::string> nothing(2);

}  // namespace

TEST_CASE("a first look finds what another run would be, on all ranks", "[first_look]") {
  const TinyRun tiny("gpt2");
  const auto config = [&](const std::vector<std::string>& overrides) {
    return tiny.config(4, "looked_at", overrides).config;
  };
  CHECK(look(config({})) == nothing);  // no folder yet
  CHECK_FALSE(fs::exists(tiny.checkpoints("looked_at")));
  tiny.train(1, 2, "looked_at");
  CHECK(look(config({})) == nothing);
  for (const std::string& told : look(config({"optim.lr=0.5", "train.seed=77"}))) {
    CHECK_THAT(told, ContainsSubstring("optim.lr") && ContainsSubstring("train.seed"));
  }
  CHECK(look(config({"optim.lr=0.5"}), {"optim.lr"}) == nothing);
  CHECK(look(config({"optim.lr=0.5", "checkpoint.resume=never"})) ==
        nothing);  // resume() says more
}

TEST_CASE("a first look leaves a step that cannot be opened to who resumes", "[first_look]") {
  const TinyRun tiny("gpt2");
  tiny.train(1, 2, "damaged");
  for (const fs::directory_entry& step : fs::directory_iterator(tiny.checkpoints("damaged"))) {
    if (step.is_directory()) {
      fs::remove(step.path() / "MANIFEST.json");
    }
  }
  CHECK(look(tiny.config(4, "damaged", {"optim.lr=0.5"}).config) == nothing);
}

TEST_CASE("a first look finds a run whose checkpoints are elsewhere", "[first_look]") {
  const TinyRun tiny("gpt2");
  tiny.train(1, 2, "steps_as_log");
  const std::string steps = tiny.checkpoints("steps_as_log").string();
  const std::string elsewhere = (tiny.folder() / "elsewhere").string();
  for (const std::string& told :
       look(tiny.config(4, "other", {"log.dir=" + steps, "checkpoint.dir=" + elsewhere}).config)) {
    CHECK_THAT(told, ContainsSubstring("is a folder of checkpoints (it holds step 2)"));
  }
  const fs::path theirs = tiny.folder() / "theirs";
  fs::create_directory(theirs);
  const std::string into = "checkpoint.dir=" + theirs.string();
  CHECK(look(tiny.config(4, "mine", {"log.dir=" + elsewhere, into}).config) == nothing);
  std::ofstream(theirs / "metrics.jsonl") << "{}\n";   // of another program, as a config.toml of
  std::ofstream(theirs / "config.toml") << "[log]\n";  // the user's
  CHECK(look(tiny.config(4, "mine", {"log.dir=" + elsewhere, into}).config) == nothing);
  std::ofstream(theirs / "config.toml") << fourfold::telemetry::effective_config_mark << "\n";
  for (const std::string& told :
       look(tiny.config(4, "mine", {"log.dir=" + elsewhere, into}).config)) {
    CHECK_THAT(told, ContainsSubstring("is the folder of another run"));
  }
  CHECK(look(tiny.config(4, "mine", {"log.dir=" + theirs.string(), into}).config) == nothing);
}
