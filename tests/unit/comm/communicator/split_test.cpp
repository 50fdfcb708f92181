// SPDX-FileCopyrightText: the fourfold authors
// SPDX-License-Identifier: Apache-2.0
#include "host/each_algorithm.hpp"
#include "host/pattern.hpp"

#include <fourfold/comm/mesh.hpp>

#include <catch2/catch_test_macros.hpp>

namespace fourfold::comm {
namespace {

using harness::Findings;

TEST_CASE("split groups by color and orders by key", "[split]") {
  on_ranks_by_each_algorithm([](Communicator& world, Findings& findings) {
    const int color = world.rank() % 2;
    const auto group = world.split(color, -world.rank(), "half");  // keys turn the order round
    const int members = (world.size() + 1 - color) / 2;
    findings.check(group->size() == members, "size");
    findings.check(group->rank() == members - 1 - world.rank() / 2, "rank");
    findings.check(group->name() == "half", "name");
    const bool shares = world.algorithm() == Algorithm::shared;
    findings.check(
        group->algorithm() == (shares && members == 1 ? Algorithm::direct : world.algorithm()),
        "algorithm");
    const std::int64_t sum = all_reduce_scalar(*group, std::int64_t{world.rank()}, ReduceOp::sum);
    findings.check(sum == std::int64_t{members} * (members - 1) + color * members, "sum");

    // Both are used at once, and a split of a split.
    auto all = filled<float>(world.rank(), 5000);
    auto some = filled<float>(group->rank(), 5000);
    Work outer = world.all_reduce(view(all), ReduceOp::sum, {});
    Work inner = group->all_reduce(view(some), ReduceOp::sum, {});
    inner.wait({});
    outer.wait({});
    const auto expected = [](int ranks) {
      return [ranks](std::int64_t i) { return reduced_pattern(ReduceOp::sum, ranks, i); };
    };
    findings.check(first_wrong(all, expected(world.size())) < 0, "outer");
    findings.check(first_wrong(some, expected(members)) < 0, "inner");
    const auto pair = group->split(group->rank() / 2, 0, "pair");
    findings.check(pair->size() == (group->rank() / 2 * 2 + 1 < members ? 2 : 1), "pair");
    pair->barrier();
  });
}

TEST_CASE("the mesh's communicators are its lines", "[split][mesh]") {
  on_ranks_by_each_algorithm([](Communicator& world, Findings& findings) {
    const int ranks = world.size();
    const MeshShape shape = ranks == 8   ? MeshShape{.pp = 2, .dp = 2, .cp = 1, .tp = 2}
                            : ranks == 4 ? MeshShape{.pp = 1, .dp = 2, .cp = 2, .tp = 1}
                                         : MeshShape{.pp = 1, .dp = ranks, .cp = 1, .tp = 1};
    const Mesh mesh(shape, world);
    findings.check(rank_of(shape, mesh.coordinate()) == world.rank(), "coordinate");
    for (const Axis axis : {Axis::pp, Axis::dp, Axis::cp, Axis::tp}) {
      Communicator& line = mesh.axis(axis);
      findings.check(line.size() == shape[axis], "size of an axis");
      findings.check(line.rank() == mesh.coordinate()[axis], "rank on an axis");
      findings.check(line.name() == name(axis), "name of an axis");
      // The members differ on this axis only: ranks are in arithmetic progression.
      const auto texts = all_gather_text(line, std::to_string(world.rank()));
      for (int position = 0; position < line.size(); ++position) {
        MeshCoordinate other = mesh.coordinate();
        (axis == Axis::pp   ? other.pp
         : axis == Axis::dp ? other.dp
         : axis == Axis::cp ? other.cp
                            : other.tp) = position;
        findings.check(texts[position] == std::to_string(rank_of(shape, other)), "a member");
      }
    }
    findings.check(mesh.data_plane().size() == shape.dp * shape.cp, "size of the plane");
    findings.check(
        mesh.data_plane().rank() == mesh.coordinate().dp * shape.cp + mesh.coordinate().cp,
        "cp is the fast one");
  });
}

}  // namespace
}  // namespace fourfold::comm
