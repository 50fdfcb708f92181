// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "scratch_folder.hpp"

#include <fourfold/base/error.hpp>
#include <fourfold/comm/thread_group.hpp>
#include <fourfold/train/resolved_run.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <fstream>
#include <string>
#include <vector>

using namespace fourfold;
using Catch::Matchers::ContainsSubstring;

namespace {

runfile::EffectiveConfig run_with(const std::vector<std::string>& overrides) {
  return runfile::parse_run_config("data.train = ['x']\nmodel.layers = 2", "run.toml", overrides);
}

/// Why the run cannot lie on its own mesh; empty: it can.
std::string refusal(const std::vector<std::string>& overrides) {
  const runfile::RunConfig config = run_with(overrides).config;
  comm::MeshShape mesh = config.mesh.shape;
  mesh.dp = 1;
  try {
    train::resolve_run({.config = config}, mesh);
  } catch (const UserError& error) {
    CHECK(error.code() == ExitCode::config);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("what is advised for a pipeline of too few layers works", "[mesh_layout]") {
  const std::vector<std::string> vee{"mesh.pp=2", "mesh.schedule=zb-v", "model.layers=1"};
  CHECK_THAT(refusal(vee), ContainsSubstring("set model.layers to 4 or more, or mesh.pp to 1"));
  CHECK(refusal({"mesh.pp=2", "mesh.schedule=zb-v", "model.layers=4"}).empty());
  CHECK(refusal({"mesh.pp=1", "mesh.schedule=zb-v", "model.layers=1"}).empty());

  CHECK_THAT(refusal({"mesh.pp=2", "mesh.schedule=interleaved", "mesh.chunks=3"}),
             ContainsSubstring("set model.layers to 6 or more"));
  CHECK_THAT(refusal({"mesh.pp=4", "mesh.schedule=zb-v"}), ContainsSubstring("set mesh.pp to 1"));
  CHECK(refusal({"mesh.pp=1", "mesh.schedule=zb-v"}).empty());

  const harness::ScratchFolder folder;
  const std::string csv = folder / "my.csv";
  std::ofstream(csv) << "F0,B0,F1,B1\nF0,B0,F1,B1\nF0,B0,F1,B1\n";
  CHECK_THAT(refusal({"mesh.pp=3", "mesh.schedule=" + csv, "train.global_batch=8"}),
             ContainsSubstring("set model.layers to 3 or more, or mesh.pp to 1"));
}

TEST_CASE("a pipeline that is much too long is not blamed on the batch", "[mesh_layout]") {
  for (const std::string schedule : {"1f1b", "interleaved", "zb-v"}) {
    const std::string told =
        refusal({"mesh.pp=65536", "mesh.schedule=" + schedule, "train.global_batch=1048576"});
    CHECK_THAT(told, ContainsSubstring("mesh.pp = 65536"));
    CHECK_THAT(told, ContainsSubstring(schedule == "1f1b" ? "set mesh.pp to 2 or less"
                                                          : "set mesh.pp to 1"));
    CHECK_THAT(told, !ContainsSubstring("global_batch"));
  }
}

TEST_CASE("a run is refused for a mesh or a batch that does not fit its ranks", "[mesh_layout]") {
  const auto on_three = [](const std::string& key) { train::resolve_run(run_with({key}), 3); };
  CHECK_THROWS_WITH(on_three("mesh.tp=2"),
                    ContainsSubstring("--set: the mesh does not fit 3 ranks"));
  CHECK_THROWS_WITH(on_three("train.global_batch=8"),
                    ContainsSubstring("--set: train.global_batch = 8 does not divide among"));
  const train::ResolvedRun run = train::resolve_run(run_with({"train.global_batch=24"}), 3);
  CHECK(run.mesh == comm::MeshShape{.dp = 3});
  CHECK(run.config.mesh.shape.dp == 0);  // as it is written
}

TEST_CASE("a schedule's file that rank 0 cannot read ends all ranks", "[mesh_layout]") {
  const runfile::EffectiveConfig effective =
      run_with({"mesh.pp=2", "mesh.schedule=absent.csv", "train.global_batch=8"});
  std::vector<std::string> told(2);
  comm::run_ranks(2, [&](comm::Communicator& world) {
    try {
      train::resolve_run(effective, world);
    } catch (const UserError& error) {
      told[static_cast<std::size_t>(world.rank())] = error.what();
    }
  });
  for (const std::string& message : told) {
    CHECK_THAT(message, ContainsSubstring("mesh.schedule = \"absent.csv\" is neither a schedule"));
  }
}

TEST_CASE("a state is cut by keys of its mesh alone, whatever its batch", "[mesh_layout]") {
  const runfile::RunConfig saved = run_with({"mesh.tp=2", "mesh.zero=1"}).config;
  const train::ResolvedRun run = train::resolve_target(saved, "pp=2,dp=7,schedule=zb-h1");
  CHECK(run.mesh == comm::MeshShape{.pp = 2, .dp = 7});
  CHECK(run.zero.shard_ranks == 7);
  CHECK_THROWS_WITH(train::resolve_target(saved, "tp=2,model.layers=3"),
                    ContainsSubstring("model.layers is no key of [mesh]"));
  CHECK_THROWS_WITH(train::resolve_target(saved, "dp=auto"), ContainsSubstring("leaves dp open"));
}
