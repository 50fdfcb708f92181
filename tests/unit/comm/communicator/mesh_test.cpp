// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include <fourfold/base/error.hpp>
#include <fourfold/comm/communicator.hpp>
#include <fourfold/comm/mesh.hpp>

#include <catch2/catch_test_macros.hpp>

#include <array>
#include <string>

namespace fourfold::comm {
namespace {

std::string problem(int pp, int dp, int cp, int tp, std::int64_t ranks, std::int64_t shares = 0) {
  try {
    resolve_mesh({pp, dp, cp, tp}, ranks, shares);
  } catch (const UserError& error) {
    CHECK(error.code() == ExitCode::config);
    return error.what();
  }
  return "none";
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("coordinates count tp fastest and pp slowest", "[mesh]") {
  const MeshShape shape{.pp = 2, .dp = 3, .cp = 5, .tp = 4};
  CHECK(shape.ranks() == 120);
  CHECK(shape.str() == "pp2 dp3 cp5 tp4");
  CHECK(coordinate_of(shape, 0) == MeshCoordinate{0, 0, 0, 0});
  CHECK(coordinate_of(shape, 1) == MeshCoordinate{.pp = 0, .dp = 0, .cp = 0, .tp = 1});
  CHECK(coordinate_of(shape, 4) == MeshCoordinate{.pp = 0, .dp = 0, .cp = 1, .tp = 0});
  CHECK(coordinate_of(shape, 20) == MeshCoordinate{.pp = 0, .dp = 1, .cp = 0, .tp = 0});
  CHECK(coordinate_of(shape, 60) == MeshCoordinate{.pp = 1, .dp = 0, .cp = 0, .tp = 0});
  CHECK(coordinate_of(shape, 119) == MeshCoordinate{1, 2, 4, 3});
  for (std::int64_t rank = 0; rank < shape.ranks(); ++rank) {
    CHECK(rank_of(shape, coordinate_of(shape, rank)) == rank);
  }
}

TEST_CASE("an axis indexes shapes and coordinates, and has a name", "[mesh]") {
  MeshShape shape{.pp = 2, .dp = 3, .cp = 5, .tp = 4};
  MeshCoordinate place{.pp = 1, .dp = 2, .cp = 4, .tp = 3};
  std::int64_t ranks = 1;
  for (const Axis axis : all_axes) {
    CHECK(value_named<Axis>(name(axis)) == axis);
    CHECK(place[axis] == shape[axis] - 1);
    ranks *= shape[axis];
    shape[axis] = 1;
    place[axis] = 0;
  }
  CHECK(ranks == 120);
  CHECK(shape == MeshShape{});
  CHECK(place == MeshCoordinate{});
  CHECK(axis_names() == "pp, dp, cp and tp");
  CHECK(product_text({.pp = 2, .tp = 4}, std::array{Axis::pp, Axis::tp}) ==
        "mesh.pp = 2 x mesh.tp = 4");
  for (const char* const other : {"", "d", "DP", "dp ", "ep"}) {
    CHECK_FALSE(value_named<Axis>(other));
  }
}

TEST_CASE("auto takes what is left", "[mesh]") {
  CHECK(resolve_mesh({.pp = 2, .dp = 0, .tp = 4}, 32) ==
        MeshShape{.pp = 2, .dp = 4, .cp = 1, .tp = 4});
  CHECK(resolve_mesh({.dp = 0}, 1) == MeshShape{});
  CHECK(resolve_mesh({.dp = 7}, 7).dp == 7);
}

TEST_CASE("a mesh that does not fit names every number and a way out", "[mesh]") {
  const std::string three = problem(1, 4, 1, 1, 3);
  CHECK(has(three, "3 ranks"));
  CHECK(has(three, "mesh.pp = 1 x mesh.dp = 4 x mesh.cp = 1 x mesh.tp = 1 is 4"));
  CHECK(has(three, "use mesh.dp = 3"));

  const std::string automatic = problem(2, 0, 1, 3, 8);
  CHECK(has(automatic, "makes 6 ranks per copy"));
  CHECK(has(automatic, "6 ranks (dp = 1) or 12 ranks (dp = 2)"));

  CHECK(has(problem(2, 0, 2, 4, 8), "at least 16 ranks"));
  CHECK(has(problem(0, 0, 1, 1, 8), "mesh.pp = 0"));
  CHECK(has(problem(1, 0, 1, -2, 8), "mesh.tp = -2"));
  CHECK(has(problem(1, -1, 1, 1, 8), "mesh.dp = -1"));
  CHECK(has(problem(1 << 20, 1, 1 << 20, 1 << 20, 8), "more ranks than can be counted"));
}

TEST_CASE("advised numbers of ranks share out what the copies of the model will share", "[mesh]") {
  // 12 micro-batches: not for 5 copies, which is the next number down, nor for 7.
  CHECK(has(problem(1, 0, 1, 4, 21, 12), "start 16 ranks (dp = 4) or 24 ranks (dp = 6)"));
  CHECK(has(problem(1, 0, 1, 4, 21), "start 20 ranks (dp = 5) or 24 ranks (dp = 6)"));
  CHECK(has(problem(1, 0, 1, 4, 57, 12), "start 48 ranks (dp = 12), or change"));
  CHECK(has(problem(1, 2, 1, 1, 5, 12), "start 4 ranks (dp = 4) or 6 ranks (dp = 6)"));
  CHECK(has(problem(1, 2, 1, 1, 6, 12), "use mesh.dp = 6"));
  CHECK(resolve_mesh({.dp = 0, .tp = 4}, 20, 12).dp == 5);  // not checked here
}

TEST_CASE("the mesh of every one of 16384 ranks can be built in one process", "[mesh]") {
  const MeshShape shape = resolve_mesh({.pp = 16, .dp = 0, .cp = 4, .tp = 8}, 16384);
  REQUIRE(shape.dp == 32);
  REQUIRE(shape.data_plane_ranks() == 128);
  std::int64_t wrong = 0;
  for (int rank = 0; rank < 16384; ++rank) {
    const auto world = make_dry_run(rank, 16384);
    const Mesh mesh(shape, *world);
    const MeshCoordinate at = coordinate_of(shape, rank);
    for (const Axis axis : {Axis::pp, Axis::dp, Axis::cp, Axis::tp}) {
      wrong += mesh.axis(axis).size() != shape[axis];
      wrong += mesh.axis(axis).rank() != at[axis];
    }
    wrong += mesh.data_plane().size() != 128 || mesh.data_plane().rank() != at.dp * 4 + at.cp;
  }
  CHECK(wrong == 0);
}

}  // namespace
}  // namespace fourfold::comm
