// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/train/resolved_run.hpp>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <string>
#include <vector>

using namespace fourfold;
using Catch::Matchers::ContainsSubstring;

namespace {

/// Why the run cannot lie on its own mesh; empty: it can.
std::string refusal(const std::vector<std::string>& overrides, const std::string& csv = "") {
  const runfile::RunConfig config =
      runfile::parse_run_config("data.train = ['x']\nmodel.layers = 2", "run.toml", overrides)
          .config;
  comm::MeshShape mesh = config.mesh.shape;
  mesh.dp = 1;
  try {
    train::resolve_run({.config = config}, mesh, csv);
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

  const std::string csv = "F0,B0,F1,B1\nF0,B0,F1,B1\nF0,B0,F1,B1\n";
  CHECK_THAT(refusal({"mesh.pp=3", "mesh.schedule=my.csv", "train.global_batch=8"}, csv),
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
